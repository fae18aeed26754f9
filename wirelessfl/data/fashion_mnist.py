"""Fashion-MNIST: 70,000 images of clothes in MNIST's format (Xiao, Rasul, Vollgraf, 2017)."""

from __future__ import annotations

from wirelessfl.data.mnist import MnistLike

FASHION_MNIST = MnistLike(
    name="fashion-mnist",
    base_url="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    digests=(
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
)
"""Digests computed from the real files."""
