// What the provider of the mixed soak responds to a request with this digest.
import { ANSWER } from '../provider/answer.mjs';

export const EVERY_MS = 50;
const EVENTS = 20;
const { usage, ...whole } = JSON.parse(ANSWER);

export function answerOf(id) {
  return JSON.stringify({ ...whole, id, usage });
}

/** As OpenAI sends them with `"stream_options": {"include_usage": true}`. */
export function eventsOf(id) {
  const event = (members) =>
    `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', model: whole.model, ...members })}\n\n`;
  const choices = [{ index: 0, delta: { content: ' castle' }, logprobs: null, finish_reason: null }];
  const events = Array.from({ length: EVENTS }, () => event({ choices, usage: null }));
  return [...events, event({ choices: [], usage }), 'data: [DONE]\n\n'];
}
