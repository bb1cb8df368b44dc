"""PyInstaller hook: collect the encoders in the package, and the modules that it imports by name on first use."""  # noqa: N999

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

datas = collect_data_files("edgeembed_runtime")
hiddenimports = collect_submodules("edgeembed_runtime", filter=lambda name: "_pyinstaller" not in name)
