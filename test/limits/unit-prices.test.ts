import { never } from '../support/never.js';
import { answer } from '../support/raw-provider.js';
import { JSON_TYPE, limitedForFile } from './limited-gateway.js';

const limited = limitedForFile();

beforeAll(async () => {
  const set = (model: string, price: object) =>
    limited.postern.admin('POST', '/prices', { catalog: 'default', model, ...price });
  const tiers = [{ size: '1024x1536', extra: { images: '250' } }];
  await set('image', { extra: { images: '40' }, tiers });
  await set('speech', { extra: { input_characters: '15' } });
  await set('sound', { extra: { input_audio_seconds: '0.1' } });
  await set('scan', { input: '1', extra: { pages: '2' } });
});

function respond(type: string[], body: string): void {
  limited.provider.script = async ({ body: request, socket }) => {
    await request;
    socket.write(answer('200 OK', type, body));
  };
}

async function send(key: string, path: string, body: string | FormData) {
  const response = await fetch(`${limited.postern.url}/v1/${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      ...(typeof body === 'string' && { 'content-type': 'application/json' }),
    },
    body,
  });
  return {
    status: response.status,
    text: await response.text(),
    id: response.headers.get('x-gateway-request-id'),
  };
}

const keyWith = (usd: string, more = {}) =>
  limited.createKey({ budgets: [{ usd, period: 'month', ...more }] });

describe.each(['typical', 'worst'])('a budget that reserves %s', (reserve) => {
  never('admits no more images than it can pay, at the dearest size', async () => {
    respond(JSON_TYPE, JSON.stringify({ data: [{ url: 'a' }, { url: 'b' }], size: '1024x1536' }));
    const image = (n: number) => JSON.stringify({ model: 'image', prompt: 'a', n });
    const key = await keyWith('0.6', { reservation: reserve });
    expect((await send(key, 'images/generations', image(3))).status).toBe(402);
    const { status, id } = await send(key, 'images/generations', image(2));
    expect(status).toBe(200);
    expect(await limited.postern.row(id!)).toMatchObject({
      cost_usd: '0.500000000',
      charge_usd: '0.500000000',
    });
    expect((await send(key, 'images/generations', image(1))).status).toBe(402);
  });

  it('takes a form for one that asks for ten images', async () => {
    const form = new FormData();
    form.set('model', 'image');
    form.set('image', new Blob(['a']), 'a.png');
    expect((await send(await keyWith('2', { reservation: reserve }), 'images/edits', form)).status).toBe(402);
    expect((await send(await keyWith('3', { reservation: reserve }), 'images/edits', form)).status).toBe(200);
  });

  never('admits no more characters than it can pay', async () => {
    respond(['Content-Type: audio/mpeg'], 'sound');
    const speech = (characters: number) => JSON.stringify({ model: 'speech', input: 'a'.repeat(characters) });
    const key = await keyWith('16', { reservation: reserve });
    expect((await send(key, 'audio/speech', speech(1_100))).status).toBe(402);
    const { status, id } = await send(key, 'audio/speech', speech(1_000));
    expect(status).toBe(200);
    expect(await limited.postern.row(id!)).toMatchObject({ charge_usd: '15.000000000' });
  });

  it.each(['sound', 'scan'])('rejects %s, of which nobody knows how much it will be', async (model) => {
    const usage = { type: 'duration', seconds: 10 };
    respond(JSON_TYPE, JSON.stringify({ usage }));
    const body = JSON.stringify({ model });
    const rejected = await send(await keyWith('9', { reservation: reserve }), 'audio/transcriptions', body);
    expect(rejected.status).toBe(403);
    expect(rejected.text).toContain('model_not_priced');
    expect(rejected.text).toMatch(/depends on (input_audio_seconds|\w*pages)/);
    const key = await keyWith('9', { reservation: reserve, unpriced: 'allow' });
    const { status, id } = await send(key, 'audio/transcriptions', body);
    expect(status).toBe(200);
    if (model === 'sound')
      expect(await limited.postern.row(id!)).toMatchObject({
        cost_usd: '0.001000000',
        charge_usd: '0.001000000',
      });
  });
});
