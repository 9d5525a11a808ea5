import {
  Body,
  ConflictException,
  ForbiddenException,
  Get,
  HttpException,
  Logger,
  Module,
  Param,
  Post,
  ServiceUnavailableException,
} from '@nestjs/common';
import { DataSource } from 'typeorm';
import { z } from 'zod';
import { AdminController } from '../../src/admin/admin-controller.js';
import { addToApp } from '../support/app-modules.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { call } from './call.js';

const noteSchema = z.strictObject({ text: z.string() });
type Note = z.output<typeof noteSchema>;

const ERRORS: Record<string, () => Error> = {
  bug: () => new Error('a bug'),
  conflict: () => new ConflictException('The note is archived.'),
  forbidden: () => new ForbiddenException('The note is locked.'),
  limit: () => new HttpException('Too many notes; wait a minute.', 429),
  teapot: () => new HttpException('A teapot.', 418),
  elsewhere: () => new ServiceUnavailableException('The search index is down.'),
};

@AdminController('notes', { name: 'Notes', description: 'Notes.' })
class NotesController {
  constructor(private readonly dataSource: DataSource) {}

  @Get(':error')
  fail(@Param('error') error: string): never {
    throw ERRORS[error]!();
  }

  @Post('text')
  asText(@Body({ schema: noteSchema }) { text }: Note): Promise<unknown> {
    return this.dataSource.query('SELECT $1::text', [text]);
  }

  @Post('json')
  asJson(@Body({ schema: noteSchema }) note: Note): Promise<unknown> {
    return this.dataSource.query("SELECT $1::jsonb ->> 'text'", [JSON.stringify(note)]);
  }
}

@Module({ controllers: [NotesController] })
class NotesModule {}

addToApp(NotesModule);

let postern: TestGateway;
let lines: string[];
beforeAll(async () => {
  postern = await startTestGateway();
  lines = [];
  // Of the admin API only: the start of the application for /docs is logged too.
  const keep = (message: unknown, ...more: unknown[]) => {
    if (more.at(-1) === 'Admin') lines.push(String(message));
  };
  Logger.overrideLogger({ log: keep, warn: keep, error: keep, fatal: keep });
});
afterAll(() => postern.stop());
beforeEach(() => (lines.length = 0));

it.each([
  ['conflict', 409, 'conflict', 'The note is archived.'],
  ['forbidden', 403, 'forbidden', 'The note is locked.'],
  ['limit', 429, 'rate_limited', 'Too many notes; wait a minute.'],
  ['teapot', 418, 'im_a_teapot', 'A teapot.'],
  ['elsewhere', 503, 'service_unavailable', 'The search index is down.'],
])('an HttpException reaches the client: %s', async (error, status, code, message) => {
  const { status: got, body } = await call(postern, 'GET', `/notes/${error}`);
  expect([got, body]).toEqual([status, { error: { message, code, details: [] } }]);
  expect(lines).toHaveLength(status < 500 ? 0 : 1);
});

it.each(['text', 'json'])(
  'a character that Postgres cannot store is the error of the client: %s',
  async (as) => {
    const { status, body } = await call(postern, 'POST', `/notes/${as}`, { text: 'a\0b' });
    expect([status, body.error.code]).toEqual([400, 'invalid_request']);
    expect(body.error.message).toContain('U+0000');
    expect((await call(postern, 'POST', `/notes/${as}`, { text: 'ab' })).status).toBe(201);
  },
);

it('an internal error is logged, also after /docs was opened', async () => {
  expect((await fetch(`${postern.url}/docs-json`)).status).toBe(200);
  const { status, body } = await call(postern, 'GET', '/notes/bug');
  expect([status, body.error.code]).toEqual([500, 'internal_error']);
  expect(lines).toEqual([expect.stringMatching(/^[\da-f-]{36}: a bug$/)]);
});
