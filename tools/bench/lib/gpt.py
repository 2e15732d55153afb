# tools/bench/lib/gpt.py - a small GPT of 52 parameters, whose loss is what its forward pass returns.
import torch
import torch.nn.functional as F
from torch import nn

LAYERS, WIDTH, HEADS, VOCABULARY, LENGTH = 4, 256, 4, 256, 64


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.register_buffer("later", torch.full((LENGTH, LENGTH), float("-inf")).triu(1))

    def forward(self, x):
        rows, length, _ = x.shape
        q, k, v = (part.view(rows, length, HEADS, -1).transpose(1, 2) for part in self.attention(self.before_attention(x)).chunk(3, -1))
        weights = (q @ k.transpose(-1, -2) / (WIDTH // HEADS)**0.5 + self.later).softmax(-1)
        x = x + self.projection((weights @ v).transpose(1, 2).reshape(rows, length, WIDTH))
        return x + self.narrow(F.gelu(self.widen(self.before_mlp(x))))


class Gpt(nn.Module):
    """Tokens in, the loss of each one's successor out. The last layer has the first one's weights."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks, self.last = nn.Sequential(*(Block() for _ in range(LAYERS))), nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        x = self.last(self.blocks(self.tokens(tokens) + self.places.weight))
        return F.cross_entropy((x @ self.tokens.weight.t())[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
