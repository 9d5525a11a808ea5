import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import Anthropic from '@anthropic-ai/sdk';
import { HttpAdapterHost } from '@nestjs/core';
import OpenAI from 'openai';
import type { GatewayHttpAdapter } from '../../src/proxy/http/gateway-http.adapter.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { answer } from '../support/raw-provider.js';
import { JSON_TYPE, type LimitedGateway, startLimited } from './limited-gateway.js';

// The official SDKs make one attempt at a spent budget, and come back when a limit says that they may.

const RETRY_AFTER_MS = 1_000;
/** A Python with the package `openai`; without it that test is skipped: no Node package brings it. */
const PYTHON = process.env.POSTERN_TEST_PYTHON;

let limited: LimitedGateway;
let spent: string;
let crowded: string;
/** Ends the call that takes the only slot of the key `crowded`. */
let release: () => void;
beforeAll(async () => {
  limited = await startLimited();
  spent = await limited.createKey({ budgets: [{ usd: '0', period: 'month' }] });
  crowded = await limited.createKey({ limits: { concurrent_requests: 1 } });
});
afterAll(() => limited.stop());

const messages = [{ role: 'user' as const, content: 'x' }];
const CALLS: Record<string, (key: string, attempt: typeof fetch) => Promise<unknown>> = {
  openai: (apiKey, fetch) =>
    new OpenAI({ baseURL: `${limited.postern.url}/v1`, apiKey, fetch }).chat.completions.create({
      model: 'm',
      messages,
    }),
  anthropic: (apiKey, fetch) =>
    new Anthropic({ baseURL: limited.postern.url, apiKey, fetch }).messages.create({
      model: 'm',
      max_tokens: 9,
      messages,
    }),
};

/** Takes the only slot, once a call with the key has reached the provider. */
async function occupy(): Promise<{ ended: Promise<unknown> }> {
  const { provider } = limited;
  const usual = provider.script;
  let arrived = () => {};
  const taken = new Promise<void>((resolve) => (arrived = resolve));
  const released = new Promise<void>((resolve) => (release = resolve));
  provider.script = async ({ body, socket }) => {
    await body;
    provider.script = usual;
    arrived();
    await released;
    socket.write(answer('200 OK', JSON_TYPE, '{}'));
  };
  const ended = limited.send(crowded, { model: 'm' });
  await taken;
  return { ended };
}

/** Counts attempts and notes their times; the slot is free before the second. */
function attempts(): { fetch: typeof fetch; times: number[] } {
  const times: number[] = [];
  return {
    times,
    fetch: async (...args) => {
      times.push(performance.now());
      const response = await fetch(...args);
      if (response.status === 429) release();
      return response;
    },
  };
}

never.each(Object.entries(CALLS))('%s makes one attempt at a spent budget', async (_, call) => {
  const counted = attempts();
  const error = (await call(spent, counted.fetch).catch((thrown: unknown) => thrown)) as Error;
  expect(error).toMatchObject({ status: 402 });
  expect(error.message).toContain('The monthly budget of this gateway key is spent: $0.00 of $0.00.');
  expect(counted.times).toHaveLength(1);
});

it.each(Object.entries(CALLS))('%s obeys the retry-after of a limit', async (_, call) => {
  const { ended } = await occupy();
  const { fetch: attempt, times } = attempts();
  await call(crowded, attempt);
  expect(times).toHaveLength(2);
  // By itself it would wait for half a second.
  expect(times[1]! - times[0]!).toBeGreaterThanOrEqual(RETRY_AFTER_MS - 50);
  await ended;
});

/** Calls that the gateway rejected with a code, until now. */
function rejected(code: string): number {
  const { rejections } = limited.postern.gateway.app.get(HttpAdapterHost<GatewayHttpAdapter>).httpAdapter;
  return rejections.counts.get(code) ?? 0;
}

(PYTHON === undefined ? it.skip : it)('openai-python does both (POSTERN_TEST_PYTHON)', async () => {
  const script = `
import openai, sys
client = openai.OpenAI(base_url=sys.argv[1] + '/v1', api_key=sys.argv[2])
try:
    client.chat.completions.create(model='m', messages=[{'role': 'user', 'content': 'x'}])
    print(200)
except openai.APIStatusError as error:
    print(error.status_code)`;
  const run = async (key: string) => {
    const { stdout } = await promisify(execFile)(PYTHON!, ['-c', script, limited.postern.url, key]);
    return Number(stdout);
  };
  const before = [rejected('insufficient_quota'), rejected('rate_limit_exceeded')] as const;
  expect(await run(spent)).toBe(402);
  expect(rejected('insufficient_quota')).toBe(before[0] + 1);
  const { ended } = await occupy();
  const late = run(crowded);
  await eventually(() => rejected('rate_limit_exceeded') > before[1]);
  // By itself it would have come three times by then.
  setTimeout(() => release(), 1_800);
  expect(await late).toBe(200);
  await ended;
});
