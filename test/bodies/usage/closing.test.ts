import { FORMATS } from './recorded-formats.js';
import { ANSWERS, dataStream, type RecordedAnswer } from './recorded-responses.js';
import { readClosed } from './read.js';

const ALL: readonly RecordedAnswer[] = [...ANSWERS, ...FORMATS];
const isCounted = ({ usage }: RecordedAnswer) => (usage.promptTokens ?? usage.completionTokens) !== null;
const counts = async (answer: RecordedAnswer, body: Buffer) => {
  const { closing, error: _, ...usage } = await readClosed({ ...answer, body });
  return { closing, usage };
};

/** Every length up to which a response may have come; of a long one some. */
function* cuts(length: number): Generator<number> {
  const step = process.env.POSTERN_TEST_FULL === '1' ? 1 : Math.max(1, Math.floor(length / 60));
  for (let cut = 1; cut < length; cut += step) yield cut;
  for (let cut = Math.max(1, length - 40); cut < length; cut++) yield cut;
}

it.each(ALL.filter(isCounted).map((answer) => [answer.name, answer] as const))(
  'takes for final only the usage of the whole response: %s',
  async (_, answer) => {
    const body = Buffer.from(answer.body as string);
    const whole = await counts(answer, body);
    const wrong: unknown[] = [];
    for (const cut of cuts(body.length)) {
      const part = await counts(answer, body.subarray(0, cut));
      if (part.closing === 'event' && JSON.stringify(part.usage) !== JSON.stringify(whole.usage))
        wrong.push({ cut, ...part });
    }
    expect(wrong).toEqual([]);
  },
);

it.each(ALL.filter(isCounted).map((answer) => [answer.name, answer] as const))(
  'knows the end of: %s',
  async (_, answer) => {
    const { closing } = await counts(answer, Buffer.from(answer.body as string));
    expect(closing).toBeDefined();
  },
);

const SSE = 'text/event-stream';
const chunk = (content: string, output: number, finish: string | null = null) => ({
  model: 'm',
  choices: [{ index: 0, delta: { content }, finish_reason: finish }],
  usage: { prompt_tokens: 5, completion_tokens: output, total_tokens: 5 + output },
});
const CHAT = { endpoint: '/v1/chat/completions', contentType: SSE };

it('does not take a stream with counts in every chunk for final without its [DONE]', async () => {
  const events = [chunk('a', 1), chunk('b', 2), chunk('', 2, 'stop')];
  const whole = dataStream(...events);
  expect(await readClosed({ ...CHAT, body: whole })).toMatchObject({ completionTokens: 2, closing: 'event' });
  const cut = whole.replace('data: [DONE]\n\n', '');
  expect((await readClosed({ ...CHAT, body: cut })).closing).toBeUndefined();
  const early = dataStream(...events.slice(0, 2)).replace('data: [DONE]\n\n', '');
  expect((await readClosed({ ...CHAT, body: early })).closing).toBeUndefined();
});

it('asks for a clean end where the usage stands beside the reason to stop', async () => {
  const { usage: _, ...first } = chunk('a', 1);
  const whole = dataStream(first, chunk('', 1, 'stop'));
  expect((await readClosed({ ...CHAT, body: whole })).closing).toBe('event');
  const clean = whole.replace('data: [DONE]\n\n', '');
  expect((await readClosed({ ...CHAT, body: clean })).closing).toBe('end');
});

it('knows that nothing more comes of a blocked prompt and of a failed response', async () => {
  const blocked = {
    promptFeedback: { blockReason: 'SAFETY' },
    usageMetadata: { promptTokenCount: 4, totalTokenCount: 4 },
  };
  const gemini = { endpoint: '/v1beta/models/gemini-2.5-flash:streamGenerateContent', contentType: SSE };
  const body = `data: ${JSON.stringify(blocked)}\n\n`;
  expect(await readClosed({ ...gemini, body })).toMatchObject({ promptTokens: 4, closing: 'event' });
  const failed = { type: 'response.failed', response: { model: 'gpt-5', status: 'failed', usage: null } };
  const responses = { endpoint: '/v1/responses', contentType: SSE };
  const stream = `event: response.failed\ndata: ${JSON.stringify(failed)}\n\n`;
  expect(await readClosed({ ...responses, body: stream })).toMatchObject({
    promptTokens: null,
    closing: 'event',
  });
});

it('does not take what a model writes into the arguments of a function for the end', async () => {
  const args = {
    finishReason: 'STOP',
    blockReason: 'x',
    choices: [],
    done: true,
    type: 'response.done',
    stop_reason: 'x',
  };
  const event = {
    candidates: [{ content: { parts: [{ functionCall: { name: 'f', args } }] } }],
    usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 2, totalTokenCount: 6 },
  };
  const gemini = { endpoint: '/v1beta/models/gemini-2.5-flash:streamGenerateContent', contentType: SSE };
  const body = `data: ${JSON.stringify(event)}\n\n`;
  const { completionTokens, closing } = await readClosed({ ...gemini, body });
  expect([completionTokens, closing]).toEqual([2, undefined]);
});

it('takes the end of a closing event that is larger than the copy for its end', async () => {
  const usage = { input_tokens: 9, output_tokens: 4, total_tokens: 13 };
  const completed = {
    type: 'response.completed',
    response: { model: 'gpt-5', output: [{ type: 'message', text: 'x'.repeat(200_000) }], usage, user: null },
  };
  const body = `event: response.completed\ndata: ${JSON.stringify(completed)}\n\n`;
  const responses = { endpoint: '/v1/responses', contentType: SSE };
  expect(await readClosed({ ...responses, body }, 60_000)).toMatchObject({
    completionTokens: 4,
    closing: 'event',
  });
  expect((await readClosed({ ...responses, body: body.slice(0, -60) }, 60_000)).closing).toBeUndefined();
});

it('does not take the input that a server reports ahead of its stream for all of it', async () => {
  const ahead = {
    model: 'm',
    choices: [],
    usage: { prompt_tokens: 5, completion_tokens: 0, total_tokens: 5 },
  };
  const { usage: _, ...content } = chunk('a', 1);
  const whole = dataStream(ahead, content, content);
  for (const body of [whole, whole.replace('data: [DONE]\n\n', '')]) {
    expect(await readClosed({ ...CHAT, body })).toMatchObject({ promptTokens: 5 });
    expect((await readClosed({ ...CHAT, body })).closing).toBeUndefined();
  }
});

it.each(['50', -50, 1e15, 1.5, true, {}, [5]])(
  'does not take the input for all that was billed, where the output is no count: %j',
  async (output) => {
    const usage = { prompt_tokens: 5, completion_tokens: output };
    const { usage: _, ...content } = chunk('a', 1);
    for (const answer of [
      { ...CHAT, body: dataStream(content, { model: 'm', choices: [], usage }) },
      { endpoint: CHAT.endpoint, body: JSON.stringify({ model: 'm', choices: [], usage }) },
    ]) {
      const read = await readClosed(answer);
      expect([read.promptTokens, read.completionTokens, read.closing]).toEqual([null, null, undefined]);
    }
    const gemini = (candidates: unknown, finishReason?: string) => ({
      candidates: [{ content: {}, ...(finishReason && { finishReason }) }],
      usageMetadata: { promptTokenCount: 4, candidatesTokenCount: candidates, totalTokenCount: 7 },
    });
    const body = dataStream(gemini(3), gemini(output, 'STOP'));
    const endpoint = '/v1beta/models/gemini-2.5-flash:streamGenerateContent';
    // What it had reported before is the least.
    const read = await readClosed({ endpoint, contentType: SSE, body });
    expect([read.completionTokens, read.closing]).toEqual([3, undefined]);
  },
);
