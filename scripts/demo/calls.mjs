// The calls a client makes: only the base URL and the key are those of the gateway.
import OpenAI from 'openai';

const MODEL = 'gpt-4o-mini';
const ask = (content) => ({ model: MODEL, messages: [{ role: 'user', content }] });

export function client(gatewayUrl, gatewayKey) {
  // What the SDK would else take from this shell's environment is not the demo's.
  return new OpenAI({
    baseURL: `${gatewayUrl}/v1`,
    apiKey: gatewayKey,
    organization: null,
    project: null,
    maxRetries: 0,
  });
}

export async function jsonCall(openai) {
  const question = 'What is a postern?';
  const completion = await openai.chat.completions.create(ask(question));
  return { question, text: completion.choices[0].message.content };
}

/** `write` gets each piece of text when it arrives. */
export async function streamedCall(openai, write) {
  const begin = performance.now();
  const since = () => Math.round(performance.now() - begin);
  const stream = await openai.chat.completions.create({
    ...ask('Count to ten.'),
    stream: true,
    stream_options: { include_usage: true },
  });
  let chunks = 0;
  let firstMs = 0;
  for await (const { choices } of stream) {
    const text = choices[0]?.delta.content;
    if (!text) continue;
    if (chunks++ === 0) firstMs = since();
    write(text);
  }
  return { chunks, firstMs, lastMs: since() };
}
