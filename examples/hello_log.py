"""Hello world of "How to use Apple GPUs from Python" (Guide to Hacking), on any machine."""

from pathlib import Path

import numpy as np

from metalloid import load


def main():
    # create an array, with random float values
    input_array = np.random.random(1_000_000).astype(np.float32)

    # load kernel from file, as a runnable python function
    log = load(Path(__file__).parent / "log.metal", function_name="log_kernel")

    # run kernel on input array above
    output_array = log(input_array)

    # check output is correct
    error = np.abs(output_array - np.log(input_array)).max()
    assert error < 1e-5, "Output does not match reference!"
    print("Reference matches output!")


if __name__ == "__main__":
    main()
