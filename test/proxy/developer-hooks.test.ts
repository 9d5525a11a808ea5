import { HttpService } from '@nestjs/axios';
import type { Express, NextFunction, Request, Response } from 'express';
import type { GatewayHttpAdapter } from '../../src/proxy/http/gateway-http.adapter.js';
import { Wire } from '../support/wire.js';

/*
 * Calls take the shortest way through axios and Express as long as a developer has put nothing there.
 */

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const adapter = () => wire.gateway.gateway.app.getHttpAdapter() as unknown as GatewayHttpAdapter;

it('lets interceptors on HttpService see each call', async () => {
  const { axiosRef } = wire.gateway.gateway.app.get(HttpService, { strict: false });
  const seen: unknown[] = [];
  await wire.call('POST /v1/chat/completions', [], '{}');
  const asked = axiosRef.interceptors.request.use((config) => {
    seen.push(config.method?.toUpperCase(), config.url);
    return config;
  });
  const answered = axiosRef.interceptors.response.use((response) => {
    seen.push('answered');
    return response;
  });
  await wire.call('POST /v1/embeddings?a=b', [], '{}');
  axiosRef.interceptors.request.eject(asked);
  axiosRef.interceptors.response.eject(answered);
  await wire.call('POST /v1/chat/completions', [], '{}');
  expect(seen).toEqual(['POST', '/v1/embeddings?a=b', 'answered']);
  await wire.expectSound(3);
});

it.each([
  ['HttpService', () => wire.gateway.gateway.app.get(HttpService, { strict: false })],
  ['any HttpService', () => HttpService.prototype],
])('calls a request() of %s that was replaced', async (_, replaced) => {
  const spy = jest.spyOn(replaced(), 'request');
  await wire.call('POST /v1/chat/completions', [], '{}');
  const calls = [...spy.mock.calls];
  spy.mockRestore();
  await wire.call('POST /v1/embeddings', [], '{}');
  expect(calls).toEqual([[expect.objectContaining({ method: 'POST', url: '/v1/chat/completions' })]]);
  await wire.expectSound(2);
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
