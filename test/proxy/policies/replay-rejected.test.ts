import { ForbiddenException, Module } from '@nestjs/common';
import { GatewayError } from '../../../src/errors/gateway-error.js';
import { CallPolicy } from '../../../src/proxy/policies/call-policy.js';
import { PoliciesModule } from '../../../src/proxy/policies/policies.module.js';
import { addToApp } from '../../support/app-modules.js';
import { startTestGateway } from '../../support/gateway.js';
import { answer, RawProvider } from '../../support/raw-provider.js';

/** The policy that finds the budget spent: the one with this order. */
let spent: number | null = null;
let isForbidden = false;

@CallPolicy()
class Early implements CallPolicy {
  readonly order: number = 1;
  admit(): void {
    if (spent === this.order) throw new GatewayError('insufficient_quota');
  }
}

@CallPolicy()
class Late extends Early {
  override readonly order = 200;
  override admit(): void {
    if (isForbidden) throw new ForbiddenException('Not today.');
    super.admit();
  }
}

@Module({ imports: [PoliciesModule], providers: [Early, Late] })
class TestPolicies {}

it('replays the response of a call that is rejected for its cost only once every policy was asked', async () => {
  const provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], 'answered'));
  });
  addToApp(TestPolicies);
  const postern = await startTestGateway({ PROVIDER_URL: provider.url });
  const key = await postern.createKey({ idempotency: 'replay', endpoints: 'all' });
  const send = async () => {
    const response = await fetch(`${postern.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'idempotency-key': 'one' },
      body: '{}',
    });
    await response.arrayBuffer();
    return [response.status, response.headers.get('idempotent-replayed')];
  };
  expect(await send()).toEqual([200, null]);
  spent = 200;
  expect(await send()).toEqual([200, 'true']);
  isForbidden = true;
  expect(await send()).toEqual([403, null]);
  spent = 1;
  expect(await send()).toEqual([402, null]);
  await postern.stop();
  await provider.stop();
});
