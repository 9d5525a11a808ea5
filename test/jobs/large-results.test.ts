import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import {
  readResults,
  ResultsIncompleteError,
  ResultsTooLargeError,
} from '../../src/bodies/jobs/batch-results.js';
import { JobGateway } from './job-gateway.js';
import { eventually } from '../support/eventually.js';
import { liveBytes } from '../support/live-bytes.js';

let jobs: JobGateway;
let server: Server;
beforeAll(async () => {
  jobs = await JobGateway.start();
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await jobs.stop();
});

const LINES = 15_000;
const line = `${JSON.stringify({
  custom_id: 'x',
  response: {
    status_code: 200,
    body: {
      choices: [{ message: { content: 'a"}\\n'.repeat(4_000) } }],
      model: 'm',
      usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
    },
  },
})}\n`;

it('reads a file of hundreds of MiB in flat memory', async () => {
  const created = { id: 'batch_large', object: 'batch', status: 'validating' };
  const ended = {
    ...created,
    status: 'completed',
    output_file_id: 'file-l',
    request_counts: { completed: LINES },
  };
  expect(line.length * LINES).toBeGreaterThan(300 * 1024 * 1024);
  let most = 0;
  const lines = Buffer.from(line.repeat(20));
  server = createServer((req, res) => {
    void (async () => {
      req.resume();
      res.setHeader('content-type', 'application/json');
      if (req.method === 'POST') return res.end(JSON.stringify(created));
      if (req.url === '/v1/batches/batch_large') return res.end(JSON.stringify(ended));
      res.setHeader('content-type', 'application/octet-stream');
      for (let i = 0; i < LINES / 20; i++) {
        // What the stand-in has in its own buffers is waited for.
        if (!res.write(lines)) await once(res, 'drain');
        if (i % 150 === 149) most = Math.max(most, liveBytes());
      }
      return res.end();
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await jobs.postern.admin('POST', '/providers', { name: 'large', url, secret: 's-0123456789' });
  const { key } = await jobs.key();
  const id = await jobs.send(key, 'POST', '/p/large/v1/batches');
  await eventually(async () => (await jobs.job(id)) !== undefined);
  const before = liveBytes();
  expect(await jobs.check(id)).toMatchObject({ state: 'settled' });
  expect(await jobs.row(id)).toMatchObject({ prompt_tokens: 7 * LINES, completion_tokens: 3 * LINES });
  // The whole file would be more than twice that.
  expect(most - before).toBeLessThan(150 * 1024 * 1024);
});

async function* chunksOf(text: string, size: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size));
}

it('reads lines that chunks cut anywhere, and the last one without its end', async () => {
  const small = `${JSON.stringify({
    response: { body: { model: 'm', usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } } },
  })}\n`;
  const text = `${small}${small}\n${small.trimEnd()}`;
  for (let size = 1; size <= text.length; size++)
    expect(await readResults(chunksOf(text, size), 3)).toMatchObject({
      promptTokens: 21,
      completionTokens: 9,
    });
});

it('does not read a file or a line that is too large', async () => {
  await expect(readResults(chunksOf('{}\n'.repeat(100), 10), 0, 100)).rejects.toThrow(ResultsTooLargeError);
  await expect(readResults(chunksOf('x'.repeat(17 * 1024 * 1024), 1024 * 1024), 0)).rejects.toThrow(
    ResultsTooLargeError,
  );
  expect(await readResults(chunksOf('{}\n \r\n', 3), 1)).toBeNull();
});

it('does not take the start of a file for all of it, wherever it ends', async () => {
  const small = `${JSON.stringify({
    response: { body: { model: 'm', usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } } },
  })}\n`;
  const text = small + small;
  const whole = { promptTokens: 14, completionTokens: 6 };
  for (let length = 0; length <= text.length; length++) {
    const read = readResults(chunksOf(text.slice(0, length), 16), 2);
    if (length >= text.length - 1) expect(await read).toMatchObject(whole);
    else await expect(read).rejects.toThrow(ResultsIncompleteError);
  }
  for (const page of ['<html>\n<body>Sign in</body>\n</html>\n', '[]\n', 'null\n', '{} {}\n'])
    await expect(readResults(chunksOf(page, 16), 0)).rejects.toThrow(ResultsIncompleteError);
});
