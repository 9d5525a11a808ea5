import {
  type ArgumentsHost,
  BadRequestException,
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  Header,
  HttpException,
  Injectable,
  Logger,
  type MiddlewareConsumer,
  Module,
  type NestInterceptor,
  type NestMiddleware,
  type NestModule,
  NotFoundException,
  Param,
  type PipeTransform,
  type Provider,
  RequestMethod,
  Scope,
  type Type,
  UseFilters,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import type { RouteInfo } from '@nestjs/common/interfaces/middleware/middleware-configuration.interface.js';
import type { Request, Response } from 'express';
import { tap } from 'rxjs';
import { AuthModule } from '../../src/auth/auth.module.js';
import { type Caller, callerOf, CurrentCaller } from '../../src/auth/caller.js';
import { GatewayKeyGuard } from '../../src/auth/gateway-key.guard.js';
import { ProxyController } from '../../src/proxy/proxy.controller.js';
import { addToApp } from '../support/app-modules.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';

/*
 * What a Nest developer registers for all controllers, binds to a path, or writes in a module of their own applies to
 * forwarded calls as Nest documents it.
 */

let seen: string[] = [];
const wants = (context: ExecutionContext) => context.switchToHttp().getRequest<Request>().headers['x-want'];

@Injectable()
class Guard implements CanActivate {
  canActivate(context: ExecutionContext): Promise<boolean> {
    seen.push(`guard of ${context.getClass().name}.${context.getHandler().name}`);
    return Promise.resolve(wants(context) !== 'no');
  }
}

@Injectable()
class Interceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler) {
    const { locals } = context.switchToHttp().getResponse<Response>();
    if (wants(context) === 'teapot') throw new Teapot();
    locals.note = 'kept';
    return next.handle().pipe(tap({ complete: () => seen.push(`interceptor ${locals.note}`) }));
  }
}

@Injectable()
class Middleware implements NestMiddleware {
  use(req: Request, _: Response, next: () => void): void {
    seen.push(`middleware ${req.originalUrl}`);
    next();
  }
}

class Teapot extends Error {}

@Catch(Teapot)
class TeapotFilter implements ExceptionFilter {
  catch(_: Teapot, host: ArgumentsHost): void {
    host.switchToHttp().getResponse<Response>().status(418).end('teapot');
  }
}

@Injectable()
class UntouchedPipe implements PipeTransform {
  transform(value: unknown): unknown {
    return value;
  }
}

@Injectable({ scope: Scope.REQUEST })
class GuardOfOneCall implements CanActivate {
  private uses = 0;
  canActivate(): boolean {
    seen.push(`guard of one call, use ${++this.uses}`);
    return true;
  }
}

function middlewareFor(...routes: (RouteInfo | Type)[]): Type {
  class MiddlewareModule implements NestModule {
    configure(consumer: MiddlewareConsumer): void {
      consumer.apply(Middleware).forRoutes(...routes);
    }
  }
  Module({})(MiddlewareModule);
  return MiddlewareModule;
}

let provider: RawProvider;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], 'answered'));
  });
});
afterAll(() => provider.stop());

/** A gateway with these for all controllers. */
function startWith(providers: Provider[], more: Type[] = []): Promise<TestGateway> {
  class Registered {}
  Module({ providers })(Registered);
  addToApp(Registered, ...more);
  return startTestGateway({ PROVIDER_URL: provider.url });
}

async function call(postern: TestGateway, want: string) {
  seen = [];
  const response = await fetch(`${postern.url}/v1/models`, {
    headers: { authorization: `Bearer ${postern.key}`, 'x-want': want },
  });
  return { status: response.status, text: await response.text(), note: response.headers.get('x-note'), seen };
}

const ANSWERED = { status: 200, text: 'answered' };

it.each<[string, Provider[], Type[], [want: string, expected: object][]]>([
  [
    'a guard',
    [{ provide: APP_GUARD, useClass: Guard }],
    [],
    [
      ['all', { ...ANSWERED, seen: ['guard of ProxyController.forward'] }],
      ['no', { status: 403, seen: ['guard of ProxyController.forward'] }],
    ],
  ],
  [
    'an interceptor and a filter',
    [
      { provide: APP_INTERCEPTOR, useClass: Interceptor },
      { provide: APP_FILTER, useClass: TeapotFilter },
    ],
    [],
    [
      ['all', { ...ANSWERED, seen: ['interceptor kept'] }],
      ['teapot', { status: 418, text: 'teapot', seen: [] }],
    ],
  ],
  ['a filter', [{ provide: APP_FILTER, useClass: TeapotFilter }], [], [['all', ANSWERED]]],
  ['a pipe', [{ provide: APP_PIPE, useClass: UntouchedPipe }], [], [['all', ANSWERED]]],
  [
    'a guard made for each call',
    [{ provide: APP_GUARD, useClass: GuardOfOneCall }],
    [],
    [
      ['all', { ...ANSWERED, seen: ['guard of one call, use 1'] }],
      ['all', { ...ANSWERED, seen: ['guard of one call, use 1'] }],
    ],
  ],
  [
    'middleware of the controller',
    [],
    [middlewareFor(ProxyController)],
    [['all', { ...ANSWERED, seen: ['middleware /v1/models'] }]],
  ],
  [
    'middleware for a pattern of paths',
    [],
    [middlewareFor({ path: 'v1/*splat', method: RequestMethod.ALL })],
    [['all', { ...ANSWERED, seen: ['middleware /v1/models'] }]],
  ],
  [
    'middleware for one path and method',
    [],
    [
      middlewareFor({ path: 'v1/models', method: RequestMethod.GET }),
      middlewareFor({ path: 'v1/models', method: RequestMethod.POST }),
    ],
    [['all', { ...ANSWERED, seen: ['middleware /v1/models'] }]],
  ],
])('runs %s', async (_, providers, modules, calls) => {
  const postern = await startWith(providers, modules);
  for (const [want, expected] of calls) expect(await call(postern, want)).toMatchObject(expected);
  await postern.stop();
});

/** Uses what Express and Nest's router prepare. */
@Injectable()
class GuardOfCalls implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const http = context.switchToHttp();
    http.getResponse<Response>().locals.note = 'kept';
    seen.push(`path ${String(http.getRequest<Request>().params['path'])}, ${typeof http.getNext()}`);
    return wants(context) !== 'no';
  }
}

it.each<[string, () => void, [want: string, expected: object][]]>([
  [
    'a guard',
    () => UseGuards(GuardOfCalls)(ProxyController),
    [
      ['all', { ...ANSWERED, seen: ['path models, function'] }],
      ['no', { status: 403, seen: ['path models, function'] }],
    ],
  ],
  [
    'an interceptor and a filter',
    () => {
      UseInterceptors(Interceptor)(ProxyController);
      UseFilters(TeapotFilter)(ProxyController);
    },
    [
      ['all', { ...ANSWERED, seen: ['interceptor kept'] }],
      ['teapot', { status: 418, text: 'teapot', seen: [] }],
    ],
  ],
  ['a filter', () => UseFilters(TeapotFilter)(ProxyController), [['all', ANSWERED]]],
  [
    'a header',
    () => {
      const { prototype } = ProxyController;
      Header('x-note', 'kept')(prototype, 'forward', Object.getOwnPropertyDescriptor(prototype, 'forward')!);
    },
    [['all', { ...ANSWERED, note: 'kept' }]],
  ],
])('runs %s of ProxyController', async (_, decorate, calls) => {
  const forward = Object.getOwnPropertyDescriptor(ProxyController.prototype, 'forward')!.value as object;
  const before = [ProxyController, forward].map((target) => [target, metadataOf(target)] as const);
  decorate();
  try {
    const postern = await startWith([]);
    for (const [want, expected] of calls) expect(await call(postern, want)).toMatchObject(expected);
    await postern.stop();
  } finally {
    for (const [target, metadata] of before) {
      for (const key of Reflect.getOwnMetadataKeys(target)) Reflect.deleteMetadata(key as string, target);
      for (const [key, value] of metadata) Reflect.defineMetadata(key, value, target);
    }
  }
});

function metadataOf(target: object): [key: string, value: unknown][] {
  return (Reflect.getOwnMetadataKeys(target) as string[]).map((key) => [
    key,
    Reflect.getOwnMetadata(key, target),
  ]);
}

it('gives middleware the request as Express does: without the path that its pattern matched in req.url', async () => {
  let urls: string[] = [];
  class MiddlewareModule implements NestModule {
    configure(consumer: MiddlewareConsumer): void {
      const keep = (req: Request, _: Response, next: () => void) => {
        urls = [req.url, req.originalUrl];
        next();
      };
      consumer.apply(keep).forRoutes('v1/*splat');
    }
  }
  Module({})(MiddlewareModule);
  const postern = await startWith([], [MiddlewareModule]);
  expect(await call(postern, 'all')).toMatchObject(ANSWERED);
  expect(urls).toEqual(['/', '/v1/models']);
  await postern.stop();
});

@Injectable()
class ThrowingGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<Request>();
    const status = Number(headers['x-want']);
    if (status === 0) throw new Error('secret detail');
    if (status === 400) throw new BadRequestException(['name is needed', 'age is no number']);
    if (status > 0) throw new HttpException(`Message for ${status}`, status);
    return true;
  }
}

it("sends the status and message of any HttpException in the error shape of the endpoint's API", async () => {
  const postern = await startWith([{ provide: APP_GUARD, useClass: ThrowingGuard }]);
  const ask = async (path: string, status: number) => {
    const response = await fetch(`${postern.url}${path}`, {
      headers: { authorization: `Bearer ${postern.key}`, 'x-want': String(status) },
    });
    const { headers } = response;
    const { error } = (await response.json()) as { error: { type: string; message: string; code?: string } };
    const header = ['x-gateway-error', 'x-should-retry'].map((name) => headers.get(name));
    return [response.status, error.type, error.message, ...header];
  };
  const expected: [number, string, string, string, string | null][] = [
    [402, 'insufficient_quota', 'Message for 402', 'payment_required', 'false'],
    [403, 'permission_error', 'Message for 403', 'forbidden', 'false'],
    [404, 'invalid_request_error', 'Message for 404', 'not_found', 'false'],
    [405, 'invalid_request_error', 'Message for 405', 'method_not_allowed', 'false'],
    [418, 'invalid_request_error', 'Message for 418', 'i_m_a_teapot', 'false'],
    [429, 'rate_limit_error', 'Message for 429', 'too_many_requests', null],
    [451, 'invalid_request_error', 'Message for 451', 'unavailable_for_legal_reasons', 'false'],
    [503, 'api_error', 'Message for 503', 'service_unavailable', null],
  ];
  for (const [status, ...rest] of expected)
    expect(await ask('/v1/models', status)).toEqual([status, ...rest]);
  const begins = async (path: string, status: number, ...rest: unknown[]) =>
    expect((await ask(path, status)).slice(0, rest.length)).toEqual(rest);
  await begins('/v1/models', 400, 400, 'invalid_request_error', 'name is needed; age is no number');
  await begins('/v1/models', 302, 500, 'api_error');
  await begins('/v1/models', 0, 500, 'api_error', expect.not.stringContaining('secret'), 'internal_error');
  await begins('/v1/messages', 429, 429, 'rate_limit_error', 'Message for 429');
  await begins('/v1/messages', 402, 402, 'billing_error', 'Message for 402');
  await postern.stop();
});

@Injectable()
class CallerInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler) {
    const req = context.switchToHttp().getRequest<Request>();
    // It sees the admin API too.
    if (req.caller !== undefined)
      throw new HttpException(`Team ${callerOf(req).grant.teamId} has no budget left.`, 402);
    return next.handle();
  }
}

@Injectable()
class CallerGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return callerOf(context.switchToHttp().getRequest<Request>()).grant.enabled;
  }
}

it('shows a global interceptor the caller, and tells a global guard, which runs before the key is checked, why not', async () => {
  const ask = async (postern: TestGateway) => {
    const headers = { authorization: `Bearer ${postern.key}` };
    const response = await fetch(`${postern.url}/v1/models`, { headers });
    return [response.status, await response.text()];
  };
  const first = await startWith([{ provide: APP_INTERCEPTOR, useClass: CallerInterceptor }]);
  const { data } = await first.admin<{ data: { id: string }[] }>('GET', '/teams');
  expect(await ask(first)).toEqual([402, expect.stringContaining(`Team ${data[0]!.id} has no budget left.`)]);
  await first.stop();

  const second = await startWith([{ provide: APP_GUARD, useClass: CallerGuard }]);
  const stacks: unknown[] = [];
  const keep = (...parts: unknown[]) => void stacks.push(...parts);
  Logger.overrideLogger({ log: () => {}, warn: () => {}, error: keep });
  expect(await ask(second)).toEqual([500, expect.any(String)]);
  expect(stacks.join('\n')).toContain('use a global interceptor (APP_INTERCEPTOR)');
  await second.stop();
});

@Injectable()
class TeamGuard extends GatewayKeyGuard {
  override handleRequest<T = Caller>(error: Error | null, caller: T | false | null): T {
    seen.push('a caller');
    return super.handleRequest(error, caller);
  }
}

@Controller('quotas')
class QuotasController {
  constructor(private readonly config: ConfigService) {}

  @Get('mine')
  @UseGuards(GatewayKeyGuard)
  mine(@CurrentCaller() { grant }: Caller): object {
    return { team: grant.teamId, grace: this.config.get<number>('SHUTDOWN_GRACE_MS') };
  }

  @Get('theirs')
  @UseGuards(TeamGuard)
  theirs(@CurrentCaller() { grant }: Caller): object {
    return { team: grant.teamId };
  }

  @Get(':name')
  one(@Param('name') name: string): never {
    throw new NotFoundException(`No quota ${name}`);
  }
}

@Module({ imports: [AuthModule], controllers: [QuotasController] })
class QuotasModule {}

it('serves a plain controller of a module of its own, behind the key guard, with the caller and the settings', async () => {
  const postern = await startWith([], [QuotasModule]);
  const get = async (path: string, key = postern.key) => {
    const response = await fetch(`${postern.url}${path}`, { headers: { authorization: `Bearer ${key}` } });
    return { status: response.status, body: (await response.json()) as { error?: { message: string } } };
  };
  const { data } = await postern.admin<{ data: { id: string }[] }>('GET', '/teams');
  expect(await get('/quotas/mine')).toEqual({ status: 200, body: { team: data[0]!.id, grace: 1000 } });
  expect((await get('/quotas/mine', 'ptn_wrong')).status).toBe(401);
  seen = [];
  // The second time, the key is in the cache.
  for (let i = 0; i < 2; i++)
    expect(await get('/quotas/theirs')).toEqual({ status: 200, body: { team: data[0]!.id } });
  expect(seen).toEqual(['a caller', 'a caller']);
  expect(await get('/quotas/other')).toMatchObject({
    status: 404,
    body: { error: { message: 'No quota other' } },
  });
  expect((await get('/quota')).status).toBe(404);
  expect((await get('/QUOTAS/mine')).status).toBe(404);
  await postern.stop();
});
