"""The folder that is put on `sys.path` for Hydra: it looks for launchers in `hydra_plugins` only.

`hydra_plugins` is a namespace that other packages share, so there is no `__init__.py` in it.
"""
