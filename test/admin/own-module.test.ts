import { Body, Controller, Module, Post } from '@nestjs/common';
import { z } from 'zod';
import { ACTIONS, SUBJECT_TYPES } from '../../src/audit/record-change.js';
import { PosternModule } from '../../src/postern.module.js';
import { runAs } from '../support/app-modules.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { call, fieldsOf } from './call.js';
import { QuotasModule } from './own-module/quotas.module.js';

/** A plain controller beside it: no admin endpoint. */
const postcardSchema = z.strictObject({ text: z.string() }).meta({ id: 'Postcard' });

@Controller('postcards')
class PostcardsController {
  @Post()
  add(@Body({ schema: postcardSchema }) postcard: object): object {
    return postcard;
  }
}

@Module({ controllers: [PostcardsController] })
class PostcardsModule {}

interface Document {
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, { security?: object[]; responses: object; requestBody: object }>>;
  components: { schemas: Record<string, { description?: string; properties: object }> };
}

@Module({ imports: [QuotasModule, PostcardsModule, PosternModule.forRoot()] })
class ListedFirst {}

@Module({ imports: [PosternModule.forRoot(), QuotasModule, PostcardsModule] })
class ListedLast {}

// Known to the process: the next test file of this worker must not see them.
afterAll(() => {
  SUBJECT_TYPES.delete('quota');
  ACTIONS.delete('granted');
});

describe.each([ListedFirst, ListedLast])('an admin resource in a module of its own, %p', (listed) => {
  let postern: TestGateway;
  beforeAll(async () => {
    runAs(listed);
    postern = await startTestGateway();
  });
  afterAll(async () => {
    await postern.stop();
  });

  it('is routed, behind the admin token', async () => {
    expect((await call(postern, 'GET', '/quotas')).body).toEqual({ data: [], next_cursor: null });
    const without = await fetch(`${postern.url}/admin/v1/quotas`);
    expect([without.status, without.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
  });

  it('is for administrators only, unless it says otherwise', async () => {
    for (const role of ['viewer', 'metrics', 'team'] as const) {
      const body = { name: `own ${role}`, role, ...(role === 'team' && { teams: ['default'] }) };
      const { token } = await postern.admin<{ token: string }>('POST', '/tokens', body);
      const { status } = await call(postern, 'GET', '/quotas', undefined, {
        authorization: `Bearer ${token}`,
      });
      expect(status).toBe(403);
    }
  });

  it('has its body checked by its schema, with errors in the admin shape', async () => {
    const wrong = await call(postern, 'POST', '/quotas', { team_id: 'nobody', calls_per_day: 0, perhaps: 1 });
    expect([wrong.status, wrong.body.error.code]).toEqual([400, 'invalid_request']);
    expect(fieldsOf(wrong)).toEqual(['team_id', 'calls_per_day', 'perhaps']);
    expect(wrong.body.error.details[2]!.message).toBe('unknown field; allowed are team_id, calls_per_day');
    const none = await call(postern, 'POST', '/quotas');
    expect(fieldsOf(none)).toEqual(['team_id', 'calls_per_day']);
    const unknown = { team_id: '01890a5d-ac96-774b-bcce-b302099a8057', calls_per_day: 5 };
    expect((await call(postern, 'POST', '/quotas', unknown)).body.error.code).toBe('not_found');
  });

  it('records changes of its own kind, which the audit log can be asked for', async () => {
    const team = await call(postern, 'POST', '/teams', { name: 'limited' });
    const order = { team_id: team.body.id, calls_per_day: 5 };
    const made = await call(postern, 'POST', '/quotas', order);
    expect([made.status, made.body]).toEqual([201, order]);
    const { body } = await call(postern, 'GET', '/audit?action=granted&subject_type=quota');
    expect(body.data).toMatchObject([{ subject_name: 'limited', after: { calls_per_day: 5 } }]);
    const { body: wrong } = await call(postern, 'GET', '/audit?subject_type=quotum');
    const [detail] = wrong.error.details;
    expect(detail!.field).toBe('subject_type');
    expect(detail!.message).toMatch(
      /^must be (?:\w+, )*key, (?:\w+, )*provider, (?:\w+, )*quota, (?:\w+, )*\w+ or \w+$/,
    );
  });

  it('leaves 404 in the admin shape to paths that nobody has, and 401 without the token', async () => {
    for (const path of ['/quota', '/quotas/7', '']) {
      const answer = await call(postern, 'GET', path);
      expect([path, answer.status, answer.body.error.code]).toEqual([path, 404, 'not_found']);
    }
    expect((await fetch(`${postern.url}/admin/v1/quota`)).status).toBe(401);
    expect((await fetch(`${postern.url}/admin`)).status).toBe(401);
  });

  it('is in the OpenAPI document by its own decorators, and so is a plain controller', async () => {
    const response = await fetch(`${postern.url}/docs-json`);
    const { paths, components, tags } = (await response.json()) as Document;
    const { get, post } = paths['/admin/v1/quotas']!;
    expect(Object.keys(get!.responses)).toEqual(['200', '400', '401', '403', '429', '503']);
    expect(Object.keys(post!.responses)).toEqual([
      '201',
      '400',
      '401',
      '403',
      '404',
      '413',
      '415',
      '429',
      '503',
    ]);
    expect(post!.security).toEqual([{ adminToken: [] }]);
    expect(Object.keys(components.schemas)).toEqual(
      expect.arrayContaining(['Quota', 'QuotaPage', 'NewQuota', 'Postcard', 'Team']),
    );
    expect(tags).toContainEqual({ name: 'Quotas', description: 'How much each team may use.' });
    expect(paths['/postcards']!.post).toMatchObject({
      requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Postcard' } } } },
    });
    expect(paths['/postcards']!.post!.security).toBeUndefined();
    expect(
      Object.keys(paths).filter(
        (path) => !/^\/(admin\/v1\/|self\/v1\/|health\/|metrics$|postcards$)/.test(path),
      ),
    ).toEqual([]);
  });
});
