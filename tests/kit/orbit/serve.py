"""The program of `serving_process`: `python -m tests.kit.orbit.serve PORT`, the database in `ORBIT_DATABASE_URL`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from orbit.server.run import OrbitServer, ServerSettings


async def main() -> None:
    """Serve until SIGTERM."""
    dsn, port = os.environ["ORBIT_DATABASE_URL"], int(sys.argv[1])
    server = OrbitServer(ServerSettings(dsn=dsn, port=port, access_log=False))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.stop)
    await server.run()


if __name__ == "__main__":
    asyncio.run(main())
