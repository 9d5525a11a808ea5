import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { z } from 'zod';
import { ANSWERS } from './api-answers.js';
import { type Operation, OPERATIONS, PARAMETERS } from './api-operations.js';

type Schema = Record<string, unknown>;
type Described = NonNullable<OpenAPIObject['paths'][string]['get']>;

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;

const FAULTS: Record<number, string> = {
  400: 'Something that was sent is wrong; details name the field.',
  401: 'The admin token is missing or wrong. With Retry-After after many wrong ones.',
  404: 'There is no such thing.',
  409: 'It collides with what is there: a name in use, a revoked key, or somebody changed it meanwhile.',
  413: 'The body is larger than 100 KB.',
  415: 'The body is not JSON.',
  503: 'The database is away right now; with Retry-After.',
};

/** The OpenAPI document of the admin API: the routes of the running router, described by the table of operations. */
export function apiDocument(app: INestApplication): OpenAPIObject {
  const config = new DocumentBuilder()
    .setTitle('Postern admin API')
    .setDescription(
      'Teams, gateway keys, providers, the request log and who changed what. Answers to GET and to changes of one team, ' +
        'key or provider carry an ETag; sent back as If-Match, a change is refused with 409 when somebody else was first.',
    )
    .setVersion('1')
    .setOpenAPIVersion('3.0.3')
    .addBearerAuth({ type: 'http', scheme: 'bearer', description: 'ADMIN_TOKEN' }, 'adminToken')
    .addSecurityRequirements('adminToken')
    .build();
  const document = SwaggerModule.createDocument(app, config);
  const described: OpenAPIObject['paths'] = {};
  for (const [path, item] of Object.entries(document.paths)) {
    const roads = METHODS.filter((method) => item[method] !== undefined);
    if (!path.startsWith('/admin/')) continue;
    const operations = roads.map((method) => {
      const operation = OPERATIONS[`${method.toUpperCase()} ${path}`];
      return [method, operation ? describe(path, operation) : item[method]];
    });
    described[path] = Object.fromEntries(operations) as OpenAPIObject['paths'][string];
  }
  document.paths = described;
  document.components = { ...document.components, schemas: schemas() as never };
  return document;
}

/** Everything that is sent and answered, under its name. */
function schemas(): Schema {
  const answers = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(ANSWERS)) answers.add(schema, { id });
  const orders = z.registry<{ id: string }>();
  for (const { body } of Object.values(OPERATIONS)) {
    if (body !== undefined && !orders.has(body.schema)) orders.add(body.schema, { id: body.name });
  }
  const options = { target: 'openapi-3.0', unrepresentable: 'any', uri: ref } as const;
  return {
    ...tidy(z.toJSONSchema(orders, { ...options, io: 'input' }).schemas, true),
    ...tidy(z.toJSONSchema(answers, { ...options, io: 'output' }).schemas, false),
  };
}

function describe(path: string, operation: Operation): Described {
  const { operationId, tag, summary, description, body, status, faults = [] } = operation;
  const codes = [400, 401, ...faults, ...(body ? [413, 415] : []), 503];
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description !== undefined && { description }),
    parameters: [...pathParameters(path), ...queryParameters(operation), ...conditions(operation)],
    ...(body && {
      requestBody: {
        required: body.optional !== true,
        content: { 'application/json': { schema: { $ref: ref(body.name) }, example: body.example } },
      },
    }),
    responses: {
      [status]: answerOf(operation),
      ...Object.fromEntries(
        codes.map((code) => [
          code,
          {
            description: FAULTS[code]!,
            content: { 'application/json': { schema: { $ref: ref('Fault') } } },
          },
        ]),
      ),
    },
  };
}

function pathParameters(path: string): NonNullable<Described['parameters']> {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name: name!,
    in: 'path',
    required: true,
    description: PARAMETERS[name!]!.description,
    schema: { type: 'string', ...PARAMETERS[name!]!.schema },
  }));
}

function queryParameters({ query }: Operation): NonNullable<Described['parameters']> {
  if (query === undefined) return [];
  const options = { target: 'openapi-3.0', unrepresentable: 'any', io: 'input' } as const;
  const { properties = {}, required = [] } = z.toJSONSchema(query, options);
  return Object.entries(tidy(properties, true)).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    description: PARAMETERS[name]!.description,
    schema: PARAMETERS[name]!.schema ?? (schema as Schema),
  }));
}

function conditions({ conditional }: Operation): NonNullable<Described['parameters']> {
  if (conditional !== true) return [];
  const description = 'The ETag of an answer before: 409 when it was changed since.';
  return [{ name: 'If-Match', in: 'header', required: false, description, schema: { type: 'string' } }];
}

function answerOf({ status, answer, types = [], tagged }: Operation): object {
  const content = answer
    ? { 'application/json': { schema: { $ref: ref(answer) } } }
    : Object.fromEntries(types.map((type) => [type, { schema: { type: 'string' } }]));
  const etag = { description: 'Names this state; for If-Match.', schema: { type: 'string' } };
  const until = { description: 'recorded_after of the next export.', schema: { type: 'string' } };
  return {
    description: status === 204 ? 'Done.' : status === 201 ? 'Made.' : 'The answer.',
    ...(tagged && { headers: { ETag: etag } }),
    ...(types.length > 0 && { headers: { 'x-recorded-until': until } }),
    ...(Object.keys(content).length > 0 && { content }),
  };
}

function ref(name: string): string {
  return `#/components/schemas/${name}`;
}

/**
 * Without what says nothing to people or generators: patterns beside a format, the bounds of safe integers. Answers may
 * gain fields later, so only orders are closed.
 */
function tidy(value: Schema, closed: boolean): Schema {
  const clean = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(clean);
    if (part === null || typeof part !== 'object') return part;
    const entries = Object.entries(part).filter(
      ([name, inner]) =>
        name !== '$id' &&
        !(name === 'pattern' && 'format' in part) &&
        !(Math.abs(Number(inner)) === Number.MAX_SAFE_INTEGER && name.endsWith('imum')) &&
        !(name === 'additionalProperties' && inner === false && !closed),
    );
    return Object.fromEntries(entries.map(([name, inner]) => [name, clean(inner)]));
  };
  return clean(value) as Schema;
}
