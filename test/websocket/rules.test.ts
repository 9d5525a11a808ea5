import { CallPolicies } from '../../src/proxy/policies/call-policies.js';
import { CallPolicy } from '../../src/proxy/policies/call-policy.js';
import { addToApp } from '../support/app-modules.js';
import { Module } from '@nestjs/common';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { WsClient, WsProvider } from './ws-provider.js';

let rules: () => readonly string[] = () => [];

@CallPolicy()
class OwnRules implements CallPolicy {
  rulesOf(): readonly string[] {
    return rules();
  }
  admit(): void {}
}

@Module({ providers: [OwnRules] })
class OwnModule {}

let provider: WsProvider;
let gateway: TestGateway;
beforeAll(async () => {
  addToApp(OwnModule);
  provider = await WsProvider.start();
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

let keys = 0;
async function open(): Promise<WsClient> {
  const name = `sockets ${++keys}`;
  const made = { team: 'default', name, websockets: true };
  const { key } = await gateway.admin<{ key: string }>('POST', '/keys', made);
  const client = WsClient.connect(gateway.url, '/v1/realtime?model=m', { authorization: `Bearer ${key}` });
  await client.opened;
  return client;
}

function changeTo(changed: () => readonly string[]): void {
  rules = changed;
  gateway.gateway.app.get(CallPolicies, { strict: false }).changed();
}

it('closes with 1008 when a policy has a rule under which the WebSocket was not admitted', async () => {
  changeTo(() => ['one']);
  const client = await open();
  changeTo(() => ['one', 'two']);
  expect(await client.closed).toEqual({ code: 1008, reason: 'the limits of the gateway key have changed' });
});

it('closes with 1011 when a policy cannot say its rules', async () => {
  changeTo(() => []);
  const client = await open();
  changeTo(() => {
    throw new Error('not today');
  });
  expect(await client.closed).toEqual({ code: 1011, reason: 'its rules could not be checked' });
  expect(await gateway.row(client.requestId)).toMatchObject({
    outcome: 'interrupted',
    error_code: 'internal_error',
  });
});
