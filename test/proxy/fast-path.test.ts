import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  ForbiddenException,
  Get,
  Injectable,
  Module,
  type Type,
  UseGuards,
} from '@nestjs/common';
import { HOST_METADATA, ROUTE_ARGS_METADATA } from '@nestjs/common/internal';
import { HttpAdapterHost } from '@nestjs/core';
import type { Request, Response } from 'express';
import { AuthModule } from '../../src/auth/auth.module.js';
import { type Caller, CurrentCaller } from '../../src/auth/caller.js';
import { GatewayKeyGuard } from '../../src/auth/gateway-key.guard.js';
import { ProxyController } from '../../src/proxy/proxy.controller.js';
import { RouteGuard } from '../../src/proxy/route.guard.js';
import { addToApp } from '../support/app-modules.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';

/*
 * What replaces or restricts a part of the fast path is not passed by.
 */

let provider: RawProvider;
let forwarded = 0;
let seen: unknown[] = [];
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    forwarded++;
    socket.write(answer('200 OK', [], 'answered'));
  });
});
afterAll(() => provider.stop());
beforeEach(() => {
  forwarded = 0;
  seen = [];
});

function start(...modules: Type[]): Promise<TestGateway> {
  addToApp(...modules);
  return startTestGateway({ PROVIDER_URL: provider.url });
}

async function statusOf({ url, key }: TestGateway, path = '/v1/models', headers = {}): Promise<number> {
  const response = await fetch(url + path, { headers: { authorization: `Bearer ${key}`, ...headers } });
  await response.text();
  return response.status;
}

describe('a guard whose canActivate() was replaced rejects calls', () => {
  let postern: TestGateway;
  beforeAll(async () => {
    postern = await start();
  });
  afterAll(() => postern.stop());
  afterEach(() => jest.restoreAllMocks());

  it.each<[string, { prototype: CanActivate }, boolean | Promise<boolean>]>([
    ['GatewayKeyGuard with false', GatewayKeyGuard, false],
    ['GatewayKeyGuard with a promise of false', GatewayKeyGuard, Promise.resolve(false)],
    ['RouteGuard with false', RouteGuard, false],
  ])('%s', async (_, { prototype }, result) => {
    const canActivate = Object.getOwnPropertyDescriptor(prototype, 'canActivate')!
      .value as CanActivate['canActivate'];
    expect(await statusOf(postern)).toBe(200);
    jest.spyOn(prototype, 'canActivate').mockImplementation(function (this: CanActivate, context) {
      void canActivate.call(this, context);
      return result;
    });
    expect([await statusOf(postern), forwarded]).toEqual([403, 1]);
  });
});

it("leaves calls for other hosts than the controller's own to Nest's router", async () => {
  Reflect.defineMetadata(HOST_METADATA, 'calls.example.com', ProxyController);
  try {
    const postern = await start();
    expect([await statusOf(postern), forwarded]).toEqual([404, 0]);
    await postern.stop();
  } finally {
    Reflect.defineMetadata(HOST_METADATA, undefined, ProxyController);
  }
});

it('gives the handler a third parameter', async () => {
  const { prototype } = ProxyController;
  const before = Object.getOwnPropertyDescriptor(prototype, 'forward')!;
  const args: unknown = Reflect.getMetadata(ROUTE_ARGS_METADATA, ProxyController, 'forward');
  const original = before.value as ProxyController['forward'];
  function forward(this: ProxyController, req: Request, res: Response, caller?: Caller): Promise<void> {
    seen.push(caller?.grant.enabled);
    return original.call(this, req, res);
  }
  for (const name of Reflect.getMetadataKeys(original) as string[])
    Reflect.defineMetadata(name, Reflect.getMetadata(name, original), forward);
  Object.defineProperty(prototype, 'forward', { ...before, value: forward });
  CurrentCaller()(prototype, 'forward', 2);
  try {
    const postern = await start();
    expect([await statusOf(postern), seen]).toEqual([200, [true]]);
    await postern.stop();
  } finally {
    Object.defineProperty(prototype, 'forward', before);
    Reflect.defineMetadata(ROUTE_ARGS_METADATA, args, ProxyController, 'forward');
  }
});

@Module({})
class RouteHookModule {
  constructor({ httpAdapter }: HttpAdapterHost) {
    httpAdapter.setOnRouteTriggered((_, path) => seen.push(path));
  }
}

it("runs the adapter's hook for routes", async () => {
  const postern = await start(RouteHookModule);
  expect([await statusOf(postern), seen]).toEqual([200, ['/v1/{*path}']]);
  await postern.stop();
});

/** Asks somebody else about the caller. */
@Injectable()
class AskingGuard extends GatewayKeyGuard {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as the return type of AuthGuard
  override handleRequest<T>(error: Error | null, caller: T | null, _?: object, on?: ExecutionContext): any {
    const known = super.handleRequest(error, caller);
    const { headers } = on!.switchToHttp().getRequest<Request>();
    return headers['x-want'] === 'no' ? Promise.reject(new ForbiddenException()) : Promise.resolve(known);
  }
}

@Controller('askings')
class AskingsController {
  @Get()
  @UseGuards(AskingGuard)
  mine(@CurrentCaller() { grant }: Caller): object {
    return { team: grant.teamId };
  }
}

@Module({ imports: [AuthModule], controllers: [AskingsController] })
class AskingsModule {}

it('waits for handleRequest() of a guard that extends GatewayKeyGuard, also for a key in the cache', async () => {
  const postern = await start(AskingsModule);
  for (const [want, status] of [
    ['yes', 200],
    ['no', 403],
    ['yes', 200],
  ])
    expect(await statusOf(postern, '/askings', { 'x-want': want })).toBe(status);
  await postern.stop();
});
