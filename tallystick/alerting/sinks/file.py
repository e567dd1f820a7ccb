"""Appends an alert to a file as one JSON line, on the disk when it returns.

A store of objects appends nothing: there the file is a folder, with an object for each alert.
"""

import json
import os
from dataclasses import dataclass
from typing import BinaryIO

from tallystick.alerting.alert import Alert
from tallystick.alerting.alert_json import SinkFailed, message_of
from tallystick.host.artifacts import ArtifactsUnreachable, ObjectPlace, Place, whole_file
from tallystick.host.private_files import FolderRefused, SharingRefused, private_file, private_folder


@dataclass(frozen=True, kw_only=True)
class FileSink:
    """One line per alert, or one object by its delivery key, so that a second delivery is the same one."""

    name: str
    path: Place

    def deliver(self, alert: Alert) -> str:
        """Append once. Raises SinkFailed."""
        line = json.dumps(message_of(alert), ensure_ascii=False, sort_keys=True).encode() + b"\n"
        if isinstance(self.path, ObjectPlace):
            try:
                with whole_file(self.path / f"{alert.delivery_key}.json") as unfinished:
                    unfinished.write_bytes(line)
            except ArtifactsUnreachable as error:
                raise SinkFailed(str(error)) from None
            return f"{len(line)} bytes"
        try:
            private_folder(self.path.parent)
            with private_file(self.path).open("a+b") as file:
                file.write(line if _ends_a_line(file) else b"\n" + line)
                file.flush()
                os.fsync(file.fileno())
        except SharingRefused as error:
            raise SinkFailed(str(error)) from None
        except FolderRefused as error:
            raise SinkFailed(f"the file cannot be written: {error}") from None
        except OSError as error:
            raise SinkFailed(f"the file cannot be written: {error.strerror}") from None
        return f"{len(line)} bytes"


def _ends_a_line(file: BinaryIO) -> bool:
    """A full disk may have cut the line before."""
    if not file.seek(0, os.SEEK_END):
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"
