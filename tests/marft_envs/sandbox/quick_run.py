"""One run of a program with small limits, for the tests of this folder."""

from marft_envs.sandbox import Limits, Stdin

QUICK = Limits(cpu_s=0.5, memory_mib=256, output_mib=1)


def run_stdin(sandbox, program, text="", limits=QUICK, **options):
    """Return the run of the program with the given standard input."""
    return sandbox.run(program, [Stdin(text)], limits, **options).runs[0]
