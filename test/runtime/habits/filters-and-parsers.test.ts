import {
  type ArgumentsHost,
  BadRequestException,
  Catch,
  type ExceptionFilter,
  Get,
  HttpException,
  Logger,
  type MiddlewareConsumer,
  Module,
  type NestModule,
} from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import express, { type Response } from 'express';
import { AdminController } from '../../../src/admin/admin-controller.js';
import { addToApp } from '../../support/app-modules.js';
import { ADMIN_TOKEN, startTestGateway } from '../../support/gateway.js';

/** As in the documentation of Nest. */
@Catch()
class CatchAll implements ExceptionFilter {
  catch(error: unknown, host: ArgumentsHost): void {
    const res = host.switchToHttp().getResponse<Response>();
    const status = error instanceof HttpException ? error.getStatus() : 500;
    res.status(status).json({ message: error instanceof HttpException ? error.getResponse() : 'unknown' });
  }
}

@Module({ providers: [{ provide: APP_FILTER, useClass: CatchAll }] })
class FilterModule {}

it('shows a filter for all errors the status of rejections', async () => {
  addToApp(FilterModule);
  const postern = await startTestGateway({ PROVIDER_URL: 'http://127.0.0.1:9' });
  const response = await fetch(`${postern.url}/v1/models`, {
    headers: { authorization: 'Bearer ptn_wrong' },
  });
  expect([response.status, await response.json()]).toEqual([401, { message: 'invalid_api_key' }]);
  await postern.stop();
});

@AdminController('messages')
class MessagesController {
  @Get()
  get(): never {
    throw new BadRequestException(['name is needed', 'age is no number']);
  }
}

@Module({ controllers: [MessagesController] })
class MessagesModule {}

it('sends the messages of pipes in the format of the admin API', async () => {
  addToApp(MessagesModule);
  const postern = await startTestGateway();
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const response = await fetch(`${postern.url}/admin/v1/messages`, { headers });
  expect(await response.json()).toEqual({
    error: {
      message: 'name is needed; age is no number',
      code: 'invalid_request',
      details: [
        { field: 'request', message: 'name is needed' },
        { field: 'request', message: 'age is no number' },
      ],
    },
  });
  await postern.stop();
});

@Module({})
class ParserModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(express.json()).forRoutes('*splat');
  }
}

it('fails a call at once whose body a parser has read, and logs what to do', async () => {
  addToApp(ParserModule);
  const postern = await startTestGateway({ PROVIDER_URL: 'http://127.0.0.1:9' });
  const logged: unknown[] = [];
  const error = (...parts: unknown[]) => void logged.push(...parts);
  Logger.overrideLogger({ log: () => {}, warn: () => {}, error });
  for (const body of ['{"model":"m"}', '']) {
    const response = await fetch(`${postern.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${postern.key}`, 'content-type': 'application/json' },
      body,
    });
    expect([response.status, response.headers.get('x-gateway-error')]).toEqual([500, 'internal_error']);
    await response.text();
  }
  expect(logged.join('\n')).toContain('forRoutes(YourController)');
  await postern.stop();
});
