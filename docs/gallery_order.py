"""The order of the gallery's examples: the radio first, then training, then parts of one's own."""

ORDER = [
    "snr_map",
    "bands_timeline",
    "energy_deadline",
    "mask_sizes",
    "beamforming_bound",
    "aircomp_error",
    "hist",
    "asynchronous",
    "sessions",
    "ra_fed_widths",
    "design_check",
    "own_algorithm",
    "compressed_uploads",
    "learning_selection",
    "batteries",
    "moving_clients",
]


class InOrder:
    """The sort key of sphinx-gallery, by file name."""

    def __init__(self, src_dir: str) -> None:
        del src_dir

    def __call__(self, filename: str) -> int:
        """The place of an example."""
        return ORDER.index(filename.removeprefix("plot_").removesuffix(".py"))
