"""`python -m edge_daemon` is `edge-daemon`."""

from edge_daemon.cli.main import main

if __name__ == "__main__":
    main(prog_name="edge-daemon")
