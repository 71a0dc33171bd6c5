"""Train a tiny Gemma 4 that answers three questions, in seconds on a CPU; save it as a checkpoint.

Run by the serving interpreter. Arguments: the directory to write (it must not exist). The model is
of the real class and, as the real one, has heads of 256 in its sliding and 512 in its full
attention, so that a server takes the same paths; it stands in where no model hub is reached.
"""

import json
import os
import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import Gemma4ForCausalLM, Gemma4TextConfig, PreTrainedTokenizerFast

QUESTIONS = {
    "What is SRE?": "Site reliability engineering applies software engineering to operations.",
    "What is a GPU?": "A GPU is a processor that runs many threads at once.",
    "Say hello.": "Hello! I am a tiny Gemma that was trained in a few seconds.",
}
PAD, BEGIN, END, USER, MODEL = "<pad>", "<bos>", "<eos>", "<user>", "<model>"
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<user>' if message.role == 'user' else '<model>' }}{{ message.content }}{{ eos_token }}"
    "{% endfor %}{% if add_generation_prompt %}<model>{% endif %}"
)
VOCABULARY = 512
CONTEXT = 4096  # tokens
STEPS, LEARNING_RATE = 85, 2e-3


def make_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[PAD, BEGIN, END, USER, MODEL],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*QUESTIONS, *QUESTIONS.values()], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        bos_token=BEGIN,
        eos_token=END,
        additional_special_tokens=[USER, MODEL],
        chat_template=CHAT_TEMPLATE,
        model_max_length=CONTEXT,
    )


def make_config(tokenizer):
    return Gemma4TextConfig(
        architectures=["Gemma4ForCausalLM"],
        vocab_size=VOCABULARY,
        vocab_size_per_layer_input=VOCABULARY,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=4,
        layer_types=["sliding_attention", "full_attention"] * 2,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=256,
        global_head_dim=512,
        hidden_size_per_layer_input=32,
        num_kv_shared_layers=0,
        sliding_window=512,
        max_position_embeddings=CONTEXT,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        dtype="float32",
    )


def batch_of(tokenizer):
    """Return token ids, attention mask and labels; only an answer and its end are learnt."""
    texts = [f"{BEGIN}{USER}{q}{END}{MODEL}{a}{END}" for q, a in QUESTIONS.items()]
    rows = tokenizer(texts, add_special_tokens=False, padding=True, return_tensors="pt")
    tokens, attended = rows["input_ids"], rows["attention_mask"]
    is_model = tokens == tokenizer.convert_tokens_to_ids(MODEL)
    answering = (is_model.cumsum(dim=1) > 0) & ~is_model
    labels = tokens.masked_fill(~answering | (attended == 0), -100)
    return tokens, attended, labels


def train(model, batch):
    tokens, attended, labels = batch
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    for step in range(STEPS):
        loss = model(input_ids=tokens, attention_mask=attended, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0 or step == STEPS - 1:
            print(f"step {step} of {STEPS}: loss {loss.item():.3f}", flush=True)


def answers_word_for_word(model, batch):
    """Return whether greedy decoding gives each answer: every next token is the likeliest."""
    tokens, attended, labels = batch
    with torch.no_grad():
        likeliest = model(input_ids=tokens, attention_mask=attended).logits.argmax(dim=-1)
    wanted = labels[:, 1:]
    learnt = wanted != -100
    return bool((likeliest[:, :-1] == wanted)[learnt].all())


def main(directory):
    torch.manual_seed(0)
    # On a busy host two threads wait for each other at every step: 20 steps in 540 s, where one
    # thread did all 85 in 215 s. [measured, 2 cores, load 15]
    torch.set_num_threads(1)
    tokenizer = make_tokenizer()
    model = Gemma4ForCausalLM(make_config(tokenizer))
    batch = batch_of(tokenizer)
    train(model.train(), batch)
    if not answers_word_for_word(model.eval(), batch):
        sys.exit(f"the tiny model did not learn its answers in {STEPS} steps; run again")
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    with open(os.path.join(directory, "generation_config.json"), "w") as file:
        ids = {"bos": tokenizer.bos_token_id, "eos": tokenizer.eos_token_id}
        json.dump({"bos_token_id": ids["bos"], "eos_token_id": ids["eos"]}, file)


main(*sys.argv[1:])
