"""PyInstaller hook: collect the built-in encoders and the modules that are imported lazily."""  # noqa: N999

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

datas = collect_data_files("edgeembed_runtime")
hiddenimports = collect_submodules("edgeembed_runtime", filter=lambda name: "_pyinstaller" not in name)
