"""Files of the user's, sent to all workers and to the scheduler."""

from __future__ import annotations

import asyncio
import warnings
from pathlib import Path
from typing import Any

from shoal.client.control.plugins import Plugins
from shoal.client.errors import SchedulerCanNotImport, UploadMissing


class Uploads(Plugins):
    """`upload_file`."""

    async def upload_file(self, filename: Any, load: bool = True) -> None:
        """Have all workers keep a file or a folder, those too that join later, and the scheduler.

        It is in the folder `local_directory` of each, before any task that starts after this.  A
        module (`.py`), an archive of modules (`.egg`, `.zip`, `.pyz`), and a folder that is a
        package, can be imported there by their names; what was imported under these before is
        imported anew.

        Args:
            filename: where it is here.
            load: import a module, or what an archive has, at once.

        Raises:
            UploadMissing: there is nothing of that name; a FileNotFoundError.
            BaseException: what a worker failed with, as it imported or wrote it.

        Cost: its bytes to each worker; the scheduler keeps them in memory.
        """
        from shoal.observe.plugins.sending import SchedulerUploadFile, UploadDirectory, UploadFile

        path = Path(filename)
        if not path.exists():
            raise UploadMissing(str(filename))
        if path.is_dir():
            folder = await asyncio.to_thread(UploadDirectory, str(path.resolve()), mode="all")
            await self.register_plugin(folder)
            return
        name = str(path)
        await self.register_plugin(await asyncio.to_thread(UploadFile, name, load))
        try:
            await self.register_plugin(await asyncio.to_thread(SchedulerUploadFile, name, load))
        except ImportError as error:  # it needs none of what workers have
            warnings.warn(SchedulerCanNotImport(name, str(error)), stacklevel=2)
