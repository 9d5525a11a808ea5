import { type CanActivate, type ExecutionContext, Injectable, Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import type { Request } from 'express';
import { defineGatewayError, GatewayError } from '../../src/errors/gateway-error.js';
import { addToApp } from '../support/app-modules.js';
import { ADMIN_TOKEN, startTestGateway } from '../support/gateway.js';

const REGION_NOT_ALLOWED = defineGatewayError('region_not_allowed', {
  status: 403,
  message: 'This key may not use this region.',
  retryable: false,
});

@Injectable()
class Rejecting implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<Request>();
    if (headers['x-want'] === 'defined') throw new GatewayError(REGION_NOT_ALLOWED);
    if (headers['x-want'] === 'inline')
      throw new GatewayError({
        code: 'quota_used_up',
        status: 429,
        message: 'No tokens left.',
        retryAfter: 30,
      });
    if (headers['x-want'] === 'detailed')
      throw new GatewayError(REGION_NOT_ALLOWED, {
        headers: ['x-region', 'eu', 'x-region', 'us'],
        type: { openai: 'region', anthropic: 'region_error' },
      });
    return true;
  }
}

@Module({ providers: [{ provide: APP_GUARD, useClass: Rejecting }] })
class RejectingModule {}

it("sends a module's own error codes in the shape of the endpoint's API, and counts them", async () => {
  addToApp(RejectingModule);
  const postern = await startTestGateway({ PROVIDER_URL: 'http://127.0.0.1:1' });
  const call = async (path: string, want: string) => {
    const response = await fetch(`${postern.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${postern.key}`, 'x-want': want },
    });
    const { headers } = response;
    return {
      status: response.status,
      headers: ['x-gateway-error', 'x-should-retry', 'retry-after'].map((name) => headers.get(name)),
      body: await response.json(),
    };
  };
  expect(await call('/v1/chat/completions', 'defined')).toEqual({
    status: 403,
    headers: ['region_not_allowed', 'false', null],
    body: {
      error: {
        message: 'This key may not use this region.',
        type: 'permission_error',
        param: null,
        code: 'region_not_allowed',
      },
    },
  });
  expect(await call('/v1/messages', 'inline')).toEqual({
    status: 429,
    headers: ['quota_used_up', null, '30'],
    body: { type: 'error', error: { type: 'rate_limit_error', message: 'No tokens left.' } },
  });
  const further = ['/v1/chat/completions', '/v1/messages'].map(async (path) => {
    const response = await fetch(`${postern.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${postern.key}`, 'x-want': 'detailed' },
    });
    const { error } = (await response.json()) as { error: { type: string } };
    return [response.headers.get('x-region'), response.headers.get('x-should-retry'), error.type];
  });
  expect(await Promise.all(further)).toEqual([
    ['eu, us', 'false', 'region'],
    ['eu, us', 'false', 'region_error'],
  ]);
  const metrics = await fetch(`${postern.url}/metrics`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  const text = await metrics.text();
  for (const code of ['region_not_allowed', 'quota_used_up'])
    expect(text).toContain(`postern_refusals_total{code="${code}"} ${code === 'region_not_allowed' ? 3 : 1}`);
  expect(text).toContain('postern_refusals_total{code="invalid_path"} 0');
  await postern.stop();
});

describe('a definition that cannot be sent', () => {
  const form = { status: 403, message: 'No.' };

  it.each(['', 'Model', '1st', 'a b', 'a\r\nx-injected: 1', 'a'.repeat(65)])('has the code %j', (code) => {
    expect(() => defineGatewayError(code, form)).toThrow('is not an error code');
    expect(() => new GatewayError({ ...form, code })).toThrow('is not an error code');
  });

  it.each([200, 399, 600, 403.5, NaN])('has the status %d', (status) => {
    expect(() => new GatewayError({ ...form, code: 'some_code', status })).toThrow(
      'is not the status of an error',
    );
  });

  it("has the gateway's own code, or one that is defined", () => {
    expect(() => defineGatewayError('overloaded', form)).toThrow("is the gateway's own");
    expect(() => defineGatewayError('region_not_allowed', form)).toThrow('is already defined');
  });
});
