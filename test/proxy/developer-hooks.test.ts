import { HttpService } from '@nestjs/axios';
import type { Express, NextFunction, Request, Response } from 'express';
import { catchError, EMPTY, repeat, tap } from 'rxjs';
import type { GatewayHttpAdapter } from '../../src/proxy/http/gateway-http.adapter.js';
import { eventually } from '../support/eventually.js';
import { Wire } from '../support/wire.js';

/*
 * Calls take the shortest way through Express as long as a developer has put nothing there.
 */

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const adapter = () => wire.gateway.gateway.app.getHttpAdapter() as unknown as GatewayHttpAdapter;

it('says that interceptors of axios would see no call', () => {
  const http = wire.gateway.gateway.app.get(HttpService, { strict: false });
  expect(() => http.axiosRef.interceptors.request.use((config) => config)).toThrow(
    'Override request() of HttpService',
  );
});

it('calls a request() of HttpService that was replaced, and one that adds to its own', async () => {
  const http = wire.gateway.gateway.app.get(HttpService, { strict: false });
  const seen: string[] = [];
  const own = http.request.bind(http);
  const spy = jest
    .spyOn(http, 'request')
    .mockImplementation((config) => own(config).pipe(tap({ complete: () => seen.push('completed') })));
  await wire.call('POST /v1/chat/completions', [], '{}');
  const calls = [...spy.mock.calls];
  spy.mockRestore();
  await wire.call('POST /v1/embeddings', [], '{}');
  expect(calls).toEqual([[expect.objectContaining({ method: 'POST', url: '/v1/chat/completions' })]]);
  expect(seen).toEqual(['completed']);
  await wire.expectSound(2);
});

it('says that a call cannot be sent again', async () => {
  const http = wire.gateway.gateway.app.get(HttpService, { strict: false });
  const errors: unknown[] = [];
  const own = http.request.bind(http);
  const spy = jest.spyOn(http, 'request').mockImplementation((config) =>
    own(config).pipe(
      repeat(2),
      catchError((error: Error) => {
        errors.push(error.message);
        return EMPTY;
      }),
    ),
  );
  await wire.call('POST /v1/chat/completions', [], '{}');
  await eventually(() => errors.length > 0);
  spy.mockRestore();
  expect(errors).toEqual(['A call cannot be sent again; a route can send it to another target.']);
  await wire.expectSound(1);
});

it('lets middleware and hooks before the controller see each call', async () => {
  const seen: string[] = [];
  const look = (by: string) => (req: Request, _: Response, next: NextFunction) => {
    seen.push(`${by} ${req.originalUrl}`);
    next();
  };
  const app = adapter().getInstance<Express>();
  const { stack } = app.router;
  await wire.call('POST /v1/chat/completions', [], '{}');
  app.use(look('middleware'));
  // As if it had been registered before the controllers.
  stack.splice(1, 0, stack.pop()!);
  await wire.call('POST /v1/completions', [], '{}');
  stack.splice(1, 1);
  adapter().setOnRequestHook((req, res, done) => look('hook')(req, res, () => done()));
  await wire.call('POST /v1/embeddings', [], '{}');
  expect(seen).toEqual(['middleware /v1/completions', 'hook /v1/embeddings']);
  await wire.expectSound(3);
});
