"""Code that runs in the sandboxed processes: the fork server and its confined children. Standard library only.

The server is a fresh ``python`` process with an empty environment. It loads this folder as the package
``marft_inside``. The calling process imports only ``values`` from here.
"""
