"""What runs on the other side of the wall: a fork server and its locked children. Standard library only.

The server is a fresh ``python`` with an empty environment that loads this folder as the package ``marft_inside``;
the trainer's side imports ``values`` from it, and nothing else.
"""
