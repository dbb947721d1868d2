"""Data sets read from local files, from the hub or from the cache.

This package knows neither mathematics nor programs. A subject (``marft_envs.mathematics.datasets``,
``marft_envs.coding.datasets``) describes each of its data sets with a ``DatasetSpec``, calls ``load_rows`` and wraps
the result in a subclass of ``DatasetTask``.
"""
