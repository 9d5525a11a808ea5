import { gzipSync } from 'node:zlib';
import { Module } from '@nestjs/common';
import { addToApp } from '../support/app-modules.js';
import { startTestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { MessageLimitPolicy } from './message-limit/message-limit.policy.js';

@Module({ providers: [MessageLimitPolicy] })
class MessageLimitModule {}

it('rejects too many messages, however they are sent', async () => {
  addToApp(MessageLimitModule);
  const provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], 'forwarded'));
  });
  const postern = await startTestGateway({ PROVIDER_URL: provider.url });
  const call = async (body: string | Uint8Array<ArrayBuffer>, headers = {}) => {
    const response = await fetch(`${postern.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${postern.key}`, 'content-type': 'application/json', ...headers },
      body,
    });
    await response.text();
    return response.headers.get('x-gateway-error') ?? response.status;
  };
  const many = `"messages":[${Array(101).fill('{}').join()}]`;
  const few = '"messages":[{"content":"a \\"colon\\": \\\\"}]';
  expect(await call(`{${few}}`)).toBe(200);
  expect(await call(`{${many}}`)).toBe('bad_request');
  const uncertain = 'body_not_determined';
  expect(await call(new Uint8Array(gzipSync(`{${many}}`)), { 'content-encoding': 'gzip' })).toBe(uncertain);
  expect(await call(`{${many},${few}}`)).toBe(uncertain);
  expect(await call(`{${many.replace('m', 'M')},${few}}`)).toBe(uncertain);
  expect(await call(`{${few},"x":[{"y":1,"\\u0079":2}]}`)).toBe(uncertain);
  expect(await call(`[${few}]`)).toBe(uncertain);
  expect(await call(`{${few}`)).toBe(uncertain);
  expect(await call(`{${few}}`, { 'content-type': 'text/plain' })).toBe(uncertain);
  expect(await call('')).toBe(uncertain);
  expect(provider.requests).toHaveLength(1);
  await postern.stop();
  await provider.stop();
});
