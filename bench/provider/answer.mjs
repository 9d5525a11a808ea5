// What the stand-in answers: a chat completion with usage of about 700 bytes, and the chunks of a streamed one.

export const ANSWER = JSON.stringify({
  id: 'chatcmpl-CfH2q8eYwJ0RkS5t7uVxWzA1bC3dE',
  object: 'chat.completion',
  created: 1763700000,
  model: 'gpt-4o-mini-2024-07-18',
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: 'A small gate at the back of a castle: whoever has the key may pass.',
        refusal: null,
        annotations: [],
      },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: {
    prompt_tokens: 231,
    completion_tokens: 17,
    total_tokens: 248,
    prompt_tokens_details: { cached_tokens: 128, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: 0,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  },
  service_tier: 'default',
  system_fingerprint: 'fp_51db84afab',
});

/** One event, as OpenAI sends it. */
export const EVENT = `data: ${JSON.stringify({
  id: 'chatcmpl-CfH2q8eYwJ0RkS5t7uVxWzA1bC3dE',
  object: 'chat.completion.chunk',
  created: 1763700000,
  model: 'gpt-4o-mini-2024-07-18',
  system_fingerprint: 'fp_51db84afab',
  choices: [{ index: 0, delta: { content: ' castle' }, logprobs: null, finish_reason: null }],
})}\n\n`;

/** What an event takes on the wire, in a chunk of its own: the size, two line ends and the event. */
export const EVENT_WIRE_BYTES = EVENT.length + EVENT.length.toString(16).length + 4;
