"""Makes a wheel of the package and a shared library: build_wheel.py LIBRARY VERSION DIRECTORY [NOTICES]. Prints its path.

NOTICES is a file with the licences of the libraries that the shared library contains.

Only the standard library is used, so that `cargo xtask package wheel` needs Python and nothing else.
"""

import base64
import hashlib
import re
import sys
import sysconfig
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
NAME = "rallypoint"


def platform_tag(library: bytes) -> str:
    """The oldest system that the library runs on: on Linux, that is decided by the symbols of glibc that it uses."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    versions = [(int(a), int(b)) for a, b in re.findall(rb"GLIBC_(\d+)\.(\d+)", library)]
    if not platform.startswith("linux_") or not versions:
        return platform
    return "manylinux_%d_%d_%s" % (*max(versions), platform[len("linux_") :])


def main() -> None:
    library, version, directory = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    tag = "py3-none-" + platform_tag(library.read_bytes())
    info = "%s-%s.dist-info/" % (NAME, version)
    files = {NAME + "/" + path.name: path.read_bytes() for path in sorted((HERE / "src" / NAME).iterdir()) if path.is_file()}
    files[NAME + "/" + library.name] = library.read_bytes()
    licences = [HERE.parent.parent / "LICENSE-MIT", HERE.parent.parent / "LICENSE-APACHE"] + [Path(path) for path in sys.argv[4:]]
    for path in licences:
        files[info + "licenses/" + path.name] = path.read_bytes()
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    metadata = """Metadata-Version: 2.4
Name: %s
Version: %s
Summary: Sessions, announcing, lists and queries for multiplayer games
License-Expression: MIT OR Apache-2.0
%sRequires-Python: >=3.8
Description-Content-Type: text/markdown

%s"""
    fields = "".join("License-File: %s\n" % path.name for path in licences)
    files[info + "METADATA"] = (metadata % (NAME, version, fields, readme)).encode()
    wheel = "Wheel-Version: 1.0\nGenerator: cargo xtask package\nRoot-Is-Purelib: false\nTag: %s\n" % tag
    files[info + "WHEEL"] = wheel.encode()
    record = ""
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (path, digest, len(content))
    files[info + "RECORD"] = (record + info + "RECORD,,\n").encode()

    target = directory / ("%s-%s-%s.whl" % (NAME, version, tag))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            # A fixed time: the same sources make the same wheel.
            entry = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))
            entry.external_attr = (0o755 if path.endswith(library.name) else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    print(target)


if __name__ == "__main__":
    main()
