import {
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  Injectable,
  Module,
  type NestInterceptor,
  type PipeTransform,
  Scope,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import type { Request, Response } from 'express';
import { of, tap } from 'rxjs';
import { AppModule } from '../../src/app.module.js';
import type { GatewayHttpAdapter } from '../../src/proxy/gateway-http.adapter.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';

/*
 * What a developer registers for all controllers runs for calls too, in the same order and with the same effect as in Nest's
 * own router.
 */

let seen: string[] = [];
const wants = (context: ExecutionContext) => context.switchToHttp().getRequest<Request>().headers['x-want'];

@Injectable()
class LateGuard implements CanActivate {
  canActivate(context: ExecutionContext): Promise<boolean> {
    seen.push(`late guard of ${context.getClass().name}.${context.getHandler().name}`);
    return Promise.resolve(wants(context) !== 'late no');
  }
}

@Injectable()
class ObservableGuard implements CanActivate {
  canActivate(context: ExecutionContext) {
    seen.push('observable guard');
    if (wants(context) === 'teapot') throw new Teapot();
    return of(wants(context) !== 'observable no');
  }
}

@Injectable()
class PlainGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    seen.push('plain guard');
    return wants(context) !== 'plain no';
  }
}

@Injectable()
class Outer implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler) {
    seen.push('outer begins');
    if (wants(context) === 'outer throws') throw new Teapot();
    return next
      .handle()
      .pipe(tap({ complete: () => seen.push('outer ends'), error: () => seen.push('outer fails') }));
  }
}

@Injectable()
class Inner implements NestInterceptor {
  // Of the two forms that Nest takes, the other one.
  intercept(_: ExecutionContext, next: CallHandler) {
    seen.push('inner begins');
    return Promise.resolve(next.handle().pipe(tap({ complete: () => seen.push('inner ends') })));
  }
}

class Teapot extends Error {}

@Catch(Teapot)
class TeapotFilter implements ExceptionFilter {
  catch(_: Teapot, host: ArgumentsHost): void {
    host.switchToHttp().getResponse<Response>().status(418).end('teapot');
  }
}

@Module({
  providers: [
    { provide: APP_GUARD, useClass: LateGuard },
    { provide: APP_GUARD, useClass: ObservableGuard },
    { provide: APP_GUARD, useClass: PlainGuard },
    { provide: APP_INTERCEPTOR, useClass: Outer },
    { provide: APP_INTERCEPTOR, useClass: Inner },
    { provide: APP_FILTER, useClass: TeapotFilter },
  ],
})
class WatchfulModule {}

@Injectable()
class UntouchedPipe implements PipeTransform {
  transform(value: unknown): unknown {
    return value;
  }
}

@Module({ providers: [{ provide: APP_PIPE, useClass: UntouchedPipe }] })
class PipeModule {}

@Injectable({ scope: Scope.REQUEST })
class GuardOfOneCall implements CanActivate {
  private uses = 0;
  canActivate(): boolean {
    seen.push(`guard of one call, use ${++this.uses}`);
    return true;
  }
}

@Module({ providers: [{ provide: APP_GUARD, useClass: GuardOfOneCall }] })
class RequestScopedModule {}

let provider: RawProvider;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], 'answered'));
  });
});
afterAll(() => provider.stop());

const adapterOf = (postern: TestGateway) =>
  postern.gateway.app.getHttpAdapter() as unknown as GatewayHttpAdapter;
const tookRoad = (postern: TestGateway) => adapterOf(postern)['isRoadFree'];

function startWith(module: new () => object): Promise<TestGateway> {
  Module({ imports: [module] })(AppModule);
  return startTestGateway({ PROVIDER_URL: provider.url });
}

async function call(postern: TestGateway, want: string) {
  seen = [];
  const response = await fetch(`${postern.url}/v1/models`, {
    headers: { authorization: `Bearer ${postern.key}`, 'x-want': want },
  });
  const text = await response.text();
  return { want, status: response.status, text, seen };
}

const BEFORE = ['late guard of ProxyController.forward', 'observable guard', 'plain guard'];
const REFUSED = { status: 400, text: expect.stringContaining('"code":"invalid_path"') as string };
const EXPECTED = [
  {
    want: 'all',
    status: 200,
    text: 'answered',
    seen: [...BEFORE, 'outer begins', 'inner begins', 'inner ends', 'outer ends'],
  },
  { want: 'late no', ...REFUSED, seen: BEFORE.slice(0, 1) },
  { want: 'observable no', ...REFUSED, seen: BEFORE.slice(0, 2) },
  { want: 'plain no', ...REFUSED, seen: BEFORE },
  { want: 'teapot', status: 418, text: 'teapot', seen: BEFORE.slice(0, 2) },
  { want: 'outer throws', status: 418, text: 'teapot', seen: [...BEFORE, 'outer begins'] },
];

it.each([
  ['the road', true],
  ["Nest's router", false],
])('%s runs guards, interceptors and filters of all controllers', async (_, free) => {
  const postern = await startWith(WatchfulModule);
  if (!free) adapterOf(postern).road!.lay = () => false;
  const got = [];
  for (const { want } of EXPECTED) got.push(await call(postern, want));
  expect(tookRoad(postern)).toBe(free);
  await postern.stop();
  expect(got).toEqual(EXPECTED);
});

it.each([
  ['a pipe', PipeModule, []],
  ['a guard made for each request', RequestScopedModule, ['guard of one call, use 1']],
])("leaves calls to Nest's router where there is %s", async (_, module, expected) => {
  const postern = await startWith(module);
  for (let i = 0; i < 2; i++) {
    expect(await call(postern, 'all')).toMatchObject({ status: 200, text: 'answered', seen: expected });
  }
  expect(tookRoad(postern)).toBe(false);
  await postern.stop();
});
