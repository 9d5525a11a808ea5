import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  ForbiddenException,
  Get,
  Injectable,
  Logger,
  type MiddlewareConsumer,
  Module,
  type Type,
  UseGuards,
  VersioningType,
} from '@nestjs/common';
import { HOST_METADATA, ROUTE_ARGS_METADATA } from '@nestjs/common/internal';
import { ApplicationConfig, HttpAdapterHost } from '@nestjs/core';
import type { Express, Request, Response } from 'express';
import { AuthModule } from '../../src/auth/auth.module.js';
import { type Caller, CurrentCaller } from '../../src/auth/caller.js';
import { GatewayKeyGuard } from '../../src/auth/gateway-key.guard.js';
import { FastPath } from '../../src/proxy/fast-path.js';
import { ProxyController } from '../../src/proxy/proxy.controller.js';
import { RouteGuard } from '../../src/proxy/stages/route.guard.js';
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
afterEach(() => jest.restoreAllMocks());
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

@Module({})
class VersioningModule {
  constructor(config: ApplicationConfig) {
    config.enableVersioning({ type: VersioningType.HEADER, header: 'x-version', defaultVersion: '1' });
  }
}

it("leaves the versions of controllers to Nest's router, and says once what that costs", async () => {
  const logged = jest.spyOn(Logger.prototype, 'log').mockImplementation();
  const postern = await start(VersioningModule);
  expect(await statusOf(postern)).toBe(404);
  expect(await statusOf(postern, '/v1/models', { 'x-version': '1' })).toBe(200);
  const lines = logged.mock.calls
    .map(([line]) => String(line))
    .filter((line) => line.startsWith('Each call'));
  expect(lines).toEqual(['Each call takes about half as much processor time again, because of versioning.']);
  jest.restoreAllMocks();
  await postern.stop();
});

it("leaves calls to Nest's router in a minor version of Nest that was not tried, and says so once", async () => {
  jest.replaceProperty(FastPath, 'nestVersion', '12.50.0');
  const logged = jest.spyOn(Logger.prototype, 'log').mockImplementation();
  const postern = await start();
  expect([await statusOf(postern), await statusOf(postern), forwarded]).toEqual([200, 200, 2]);
  expect(postern.gateway.app.get(HttpAdapterHost).httpAdapter).toHaveProperty('isFast', false);
  const lines = logged.mock.calls.map(([line]) => String(line)).filter((line) => line.includes('12.50.0'));
  expect(lines).toEqual([
    'Each call takes about half as much processor time again, because of Nest 12.50.0: Postern was tried with 12.5.',
  ]);
  await postern.stop();
});

it("needs no router of Nest's in the version that is installed", async () => {
  const prepared = jest.spyOn(FastPath.prototype, 'prepare');
  const postern = await start();
  expect([await statusOf(postern), forwarded]).toEqual([200, 1]);
  expect(prepared).toHaveReturnedWith(null);
  jest.restoreAllMocks();
  await postern.stop();
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

const look = (req: Request, _: Response, next: () => void) => {
  seen.push(req.originalUrl);
  next();
};

/** Registers something with Express before the controllers. */
function registering(register: (app: Express) => unknown): Type {
  @Module({})
  class RegisteringModule {
    constructor({ httpAdapter }: HttpAdapterHost) {
      register(httpAdapter.getInstance<Express>());
    }
  }
  return RegisteringModule;
}

function middlewareFor(path: string): Type {
  class MiddlewareModule {
    configure(consumer: MiddlewareConsumer): void {
      consumer.apply(look).forRoutes(path);
    }
  }
  Module({})(MiddlewareModule);
  return MiddlewareModule;
}

it.each<[string, Type]>([
  ["forRoutes('v1/models')", middlewareFor('v1/models')],
  ["forRoutes(':version/models')", middlewareFor(':version/models')],
  ["forRoutes('*any/models')", middlewareFor('*any/models')],
  ["use('/v1/models')", registering((app) => app.use('/v1/models', look))],
  ['use() with a list of paths', registering((app) => app.use(['/other', '/v1/models'], look))],
  ['use() with a RegExp', registering((app) => app.use(/^\/v1\/models/, look))],
  ["get('/:version/models')", registering((app) => app.get('/:version/models', look))],
  ["get('{/v1}/models')", registering((app) => app.get('{/v1}/models', look))],
])('runs middleware that is for one path of calls: %s', async (_, module) => {
  const postern = await start(module);
  expect([await statusOf(postern), seen]).toEqual([200, ['/v1/models']]);
  await postern.stop();
});

it('is used beside middleware for other paths', async () => {
  const others = registering((app) => app.use(['/v1x', '/private/v1'], look).get('/', look));
  const postern = await start(others, AskingsModule);
  expect([await statusOf(postern), seen]).toEqual([200, []]);
  expect(postern.gateway.app.get(HttpAdapterHost).httpAdapter).toHaveProperty('isFast', true);
  await postern.stop();
});

/** Asks somebody else about the caller. */
@Injectable()
class AskingGuard extends GatewayKeyGuard {
  // oxlint-disable-next-line typescript/no-explicit-any -- as the return type of AuthGuard
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
