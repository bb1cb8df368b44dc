"""PyInstaller hook: collect the built-in encoders and the modules that are imported lazily."""  # noqa: N999

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

datas = collect_data_files("edgeembed_runtime")
# An integration is packed with its library if the app imports it, and not only because the library is installed.
_LEFT_OUT = ("edgeembed_runtime._pyinstaller", "edgeembed_runtime.integrations")
hiddenimports = collect_submodules("edgeembed_runtime", filter=lambda name: not name.startswith(_LEFT_OUT))
