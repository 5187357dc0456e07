"""Runs llama.cpp's HTTP server on one model until it is told to stop.

Usage: llama_server.py MODEL.gguf ADDRESS_FILE [--port N] [--slots N] [--threads N]

Port 0, the default, lets the system choose. Once the model is loaded and the server listens, its base URL is written
to ADDRESS_FILE, which appears complete or not at all. SIGTERM or SIGINT ends the process.
"""

import argparse
import os
import signal
import sys

import xllamacpp

TOKENS_PER_SLOT = 2048
# The server keeps old prompts in memory to save work; with its own limit a test run grows past a gigabyte.
PROMPT_CACHE_MIB = 128


def arguments():
    parser = argparse.ArgumentParser(description="llama.cpp's HTTP server on one model")
    parser.add_argument("model")
    parser.add_argument("address_file")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


def settings(args):
    params = xllamacpp.CommonParams()
    params.model.path = args.model
    params.model_alias = {"smollm2-135m"}
    params.hostnames = ["127.0.0.1"]
    params.port = args.port
    params.n_parallel = args.slots
    params.n_ctx = TOKENS_PER_SLOT * args.slots
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.cpuparams.n_threads = args.threads
    params.cpuparams_batch.n_threads = args.threads
    # Nothing may be fetched, and no page is served: the model file is all there is.
    params.offline = True
    params.ui = False
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.endpoint_props = True
    return params


def publish(address, path):
    partial = f"{path}.partial"
    with open(partial, "w", encoding="ascii") as file:
        file.write(f"{address}\n")
    os.replace(partial, path)


def main():
    args = arguments()
    if not os.path.isfile(args.model):
        sys.exit(f"llama_server.py: there is no model file at {args.model}")
    # Blocked before the server makes its threads, which inherit the mask: only sigwait below ever sees a stop signal.
    stops = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    server = xllamacpp.Server(settings(args))
    publish(server.listening_address, args.address_file)
    signal.sigwait(stops)
    # The server's own threads may be in the middle of an answer; the caller wants an end, not a drain.
    os._exit(0)


if __name__ == "__main__":
    main()
