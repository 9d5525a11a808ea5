import {
  Controller,
  ForbiddenException,
  Get,
  Inject,
  Injectable,
  Module,
  Scope,
  type Type,
} from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { CallPolicy } from '../../../src/proxy/policies/call-policy.js';
import { FinishedCalls } from '../../../src/request-log/finished-calls.js';
import { addToApp } from '../../support/app-modules.js';
import { startTestGateway } from '../../support/gateway.js';

/*
 * Nest makes what is in request or transient scope, or depends on it, for a request or a user of it. What must see every
 * call would then see none, and nobody would notice: the start fails.
 */

@Injectable({ scope: Scope.REQUEST })
class Visitor {
  constructor(@Inject(REQUEST) readonly request: unknown) {}
}

@CallPolicy()
class NeverMade implements CallPolicy {
  constructor(readonly visitor: Visitor) {}
  admit(): void {
    throw new Error('rejects everything');
  }
}

@CallPolicy()
class Plain implements CallPolicy {
  admit(): void {}
}

@Injectable({ scope: Scope.REQUEST })
class Listener {
  constructor(finished: FinishedCalls) {
    finished.listen('of a request', () => {});
  }
}

@Controller({ path: 'listening', scope: Scope.REQUEST })
class ListeningController {
  constructor(finished: FinishedCalls) {
    finished.listen('of a request', () => {});
  }
  @Get()
  get(): void {}
}

it.each<[string, object, string]>([
  ['a policy that depends on the request', { providers: [Visitor, NeverMade] }, 'NeverMade is'],
  [
    'a policy in transient scope',
    { providers: [{ provide: 'plain', useClass: Plain, scope: Scope.TRANSIENT }] },
    'Plain is',
  ],
  ['a listener in request scope', { providers: [Listener] }, 'Listener is'],
  ['a controller that listens', { controllers: [ListeningController] }, 'ListeningController is'],
])('does not start with %s', async (_, metadata, message) => {
  class OwnModule {}
  Module(metadata)(OwnModule as Type);
  addToApp(OwnModule);
  await expect(startTestGateway()).rejects.toThrow(`${message} in request or transient scope`);
});

it('asks a policy that a factory makes', async () => {
  @CallPolicy()
  class Closed implements CallPolicy {
    constructor(private readonly reason: string) {}
    admit(): void {
      throw new ForbiddenException(this.reason);
    }
  }
  @Module({ providers: [{ provide: 'closed', useFactory: () => new Closed('Closed.') }] })
  class OwnModule {}
  addToApp(OwnModule);
  const postern = await startTestGateway({ PROVIDER_URL: 'http://127.0.0.1:9' });
  const headers = { authorization: `Bearer ${postern.key}` };
  const response = await fetch(`${postern.url}/v1/models`, { headers });
  expect([response.status, await response.text()]).toEqual([403, expect.stringContaining('Closed.')]);
  await postern.stop();
});
