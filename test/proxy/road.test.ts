import {
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  Injectable,
  type MiddlewareConsumer,
  Module,
  type NestInterceptor,
  type NestMiddleware,
  type NestModule,
  type PipeTransform,
  type Provider,
  Scope,
  type Type,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import type { Request, Response } from 'express';
import { tap } from 'rxjs';
import { AppModule } from '../../src/app.module.js';
import type { GatewayHttpAdapter } from '../../src/proxy/gateway-http.adapter.js';
import { ProxyController } from '../../src/proxy/proxy.controller.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';

/*
 * Calls go the gateway's own way past its guards; where a developer has registered something for all controllers, or bound
 * something to that of calls, they go Nest's, and it runs as Nest runs it.
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

@Module({})
class MiddlewareModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(Middleware).forRoutes(ProxyController);
  }
}

let provider: RawProvider;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], 'answered'));
  });
});
afterAll(() => provider.stop());

function isRoadTaken({ gateway }: TestGateway): boolean {
  return (gateway.app.getHttpAdapter() as unknown as GatewayHttpAdapter)['isRoadFree'];
}

/** A gateway with these for all controllers. */
function startWith(providers: Provider[], more: Type[] = []): Promise<TestGateway> {
  class Registered {}
  Module({ providers })(Registered);
  Module({ imports: [Registered, ...more] })(AppModule);
  return startTestGateway({ PROVIDER_URL: provider.url });
}

async function call(postern: TestGateway, want: string) {
  seen = [];
  const response = await fetch(`${postern.url}/v1/models`, {
    headers: { authorization: `Bearer ${postern.key}`, 'x-want': want },
  });
  return { status: response.status, text: await response.text(), seen };
}

const ANSWERED = { status: 200, text: 'answered' };

it('takes its own way while nobody has registered anything', async () => {
  const postern = await startWith([]);
  expect(await call(postern, 'all')).toEqual({ ...ANSWERED, seen: [] });
  expect(isRoadTaken(postern)).toBe(true);
  await postern.stop();
});

it.each<[string, Provider[], Type[], [want: string, expected: object][]]>([
  [
    'a guard',
    [{ provide: APP_GUARD, useClass: Guard }],
    [],
    [
      ['all', { ...ANSWERED, seen: ['guard of ProxyController.forward'] }],
      ['no', { status: 400, seen: ['guard of ProxyController.forward'] }],
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
    [MiddlewareModule],
    [['all', { ...ANSWERED, seen: ['middleware /v1/models'] }]],
  ],
])("leaves calls to Nest's router where there is %s", async (_, providers, modules, calls) => {
  const postern = await startWith(providers, modules);
  for (const [want, expected] of calls) expect(await call(postern, want)).toMatchObject(expected);
  expect(isRoadTaken(postern)).toBe(false);
  await postern.stop();
});
