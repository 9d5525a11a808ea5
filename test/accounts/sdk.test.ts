import Anthropic from '@anthropic-ai/sdk';
import OpenAI, { toFile } from 'openai';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { AccountProvider } from './account-provider.js';

/*
 * Three teams, each with an account of its own at the same provider: what the keys of one make, those of another neither
 * see, nor name, nor list.
 */

const TEAMS = ['search', 'ads', 'maps'] as const;
type TeamName = (typeof TEAMS)[number];
const secretOf = (team: string) => `sk-project-of-${team}-0123456789`;

let provider: AccountProvider;
let gateway: TestGateway;
const keys = {} as Record<TeamName, string>;
beforeAll(async () => {
  provider = await AccountProvider.start(...TEAMS.map(secretOf));
  gateway = await startTestGateway();
  const { url } = provider;
  for (const team of TEAMS) {
    await gateway.admin('POST', '/teams', { name: team });
    const name = `openai-${team}`;
    await gateway.admin('POST', '/providers', { name, url, secret: secretOf(team), team });
    const anthropic = { name: `anthropic-${team}`, url, secret: secretOf(team), auth: 'x-api-key', team };
    await gateway.admin('POST', '/providers', anthropic);
    await gateway.admin('PATCH', `/teams/${team}`, { default_provider: name });
    keys[team] = await gateway.createKey({ team, name: 'jobs', endpoints: 'own' });
  }
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

const openai = (team: TeamName) =>
  new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: keys[team], maxRetries: 0 });
const anthropic = (team: TeamName, of = team) =>
  new Anthropic({ baseURL: `${gateway.url}/p/anthropic-${of}`, apiKey: keys[team], maxRetries: 0 });

/** Status and code of the error that a call ends with. */
async function failure(call: Promise<unknown>): Promise<unknown> {
  const error = (await call.then(
    () => null,
    (error: unknown) => error,
  )) as { status?: number; code?: string | null } | null;
  return error && [error.status, error.code ?? null];
}

const collect = async <T>(pages: PromiseLike<AsyncIterable<T>>): Promise<T[]> => {
  const all: T[] = [];
  for await (const one of await pages) all.push(one);
  return all;
};
const ids = async (pages: PromiseLike<AsyncIterable<{ id: string }>>) =>
  (await collect(pages)).map(({ id }) => id);

describe("the OpenAI SDK with keys of 'endpoints: own'", () => {
  interface Made {
    file: string;
    batch: string;
    output: string;
    response: string;
    store: string;
  }
  const made = {} as Record<TeamName, Made>;
  beforeAll(async () => {
    for (const team of TEAMS) {
      const client = openai(team);
      const content = await toFile(Buffer.from(`questions of ${team}`), 'in.jsonl');
      const file = await client.files.create({ file: content, purpose: 'batch' });
      const batch = await client.batches.create({
        input_file_id: file.id,
        endpoint: '/v1/chat/completions',
        completion_window: '24h',
      });
      const response = await client.responses.create({ model: 'm', input: `secret of ${team}` });
      const store = await client.vectorStores.create({ name: `knowledge of ${team}` });
      await client.vectorStores.files.create(store.id, { file_id: file.id });
      const output = batch.output_file_id!;
      made[team] = { file: file.id, batch: batch.id, output, response: response.id, store: store.id };
    }
  });

  it('use the account of their team, each its own', () => {
    for (const team of TEAMS) expect(provider.count(secretOf(team))).toBe(5);
    expect(new Set(TEAMS.flatMap((team) => Object.values<string>({ ...made[team] }))).size).toBe(15);
  });

  it.each(TEAMS)('of the team %s read what they have made, and go on with it', async (team) => {
    const client = openai(team);
    const { file, batch, output, response, store } = made[team];
    expect(await (await client.files.content(file)).text()).toBe(`questions of ${team}`);
    expect((await client.batches.retrieve(batch)).status).toBe('completed');
    expect(await (await client.files.content(output)).text()).toBe(`results of questions of ${team}`);
    expect((await client.responses.retrieve(response)).output_text).toBe(`secret of ${team}`);
    expect((await client.vectorStores.retrieve(store)).name).toBe(`knowledge of ${team}`);
    expect(await ids(client.vectorStores.files.list(store))).toEqual([file]);
    const next = await client.responses.create({ model: 'm', input: 'more', previous_response_id: response });
    expect(next.output_text).toBe(`more after secret of ${team}`);
    await client.responses.delete(next.id);
    expect(await failure(client.responses.retrieve(next.id))).toEqual([404, 'not_found']);
  });

  it.each(TEAMS)('of the team %s list nothing of another', async (team) => {
    const client = openai(team);
    const { file, batch, output, store } = made[team];
    expect(await ids(client.files.list())).toEqual([file, output]);
    expect(await ids(client.batches.list())).toEqual([batch]);
    expect(await ids(client.vectorStores.list())).toEqual([store]);
  });

  it.each(TEAMS)('of the team %s find nothing by the IDs of another', async (team) => {
    const client = openai(team);
    for (const other of TEAMS.filter((one) => one !== team)) {
      const { file, batch, output, response, store } = made[other];
      const tries = [
        client.files.retrieve(file),
        client.files.content(output),
        client.files.delete(file),
        client.batches.retrieve(batch),
        client.batches.create({
          input_file_id: file,
          endpoint: '/v1/chat/completions',
          completion_window: '24h',
        }),
        client.responses.retrieve(response),
        client.responses.delete(response),
        client.responses.create({ model: 'm', input: 'more', previous_response_id: response }),
        client.vectorStores.retrieve(store),
        client.vectorStores.files.list(store),
        client.vectorStores.files.create(made[team].store, { file_id: file }),
      ];
      for (const outcome of await Promise.all(tries.map(failure)))
        expect(outcome).toEqual([404, 'not_found']);
    }
    for (const one of TEAMS) expect(provider.count(secretOf(one))).toBe(5);
  });

  it('are rejected by the provider of another team, before it gets a request', async () => {
    const before = provider.secrets.length;
    const client = new OpenAI({
      baseURL: `${gateway.url}/p/openai-ads/v1`,
      apiKey: keys.search,
      maxRetries: 0,
    });
    const rejections = [
      client.files.list(),
      client.responses.retrieve(made.ads.response),
      client.models.list(),
    ];
    for (const outcome of await Promise.all(rejections.map(failure)))
      expect(outcome).toEqual([403, 'provider_not_allowed']);
    expect(provider.secrets.length).toBe(before);
  });
});

describe("Anthropic's SDK with such keys", () => {
  const make = (team: TeamName) =>
    anthropic(team).messages.batches.create({
      requests: [
        {
          custom_id: `of ${team}`,
          params: { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] },
        },
      ],
    });
  const results = async (team: TeamName, id: string) => {
    const response = await anthropic(team).get<Response>(`/v1/messages/batches/${id}/results`, {
      __binaryResponse: true,
    });
    return response.text();
  };

  it('reads the results of a batch through the gateway by their path', async () => {
    const { id } = await make('search');
    expect(JSON.parse(await results('search', id))).toMatchObject({ custom_id: 'of search' });
    expect(await failure(results('ads', id))).toEqual([404, null]);
    expect(await ids(anthropic('ads').messages.batches.list())).toEqual([]);
  });

  it('goes past the gateway with the absolute results_url, where a gateway key is not accepted', async () => {
    const batch = await make('maps');
    expect(batch.results_url).toBe(`${provider.url}/v1/messages/batches/${batch.id}/results`);
    const before = provider.secrets.length;
    expect(await failure(collect(anthropic('maps').messages.batches.results(batch.id)))).toEqual([401, null]);
    expect(provider.secrets.slice(before)).toEqual([secretOf('maps'), keys.maps]);
  });
});
