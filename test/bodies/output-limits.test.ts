import { choices, maxOutputTokens } from '../../src/bodies/output-limits.js';
import { membersOf } from './read-body.js';

const GEMINI = '/v1beta/models/gemini-2.5-flash:generateContent';
const read = (body: string) => membersOf(Buffer.from(body));

it('of the output is the highest that the request names', () => {
  const members = read(
    '{"generationConfig":{"maxOutputTokens":5},"generation_config":{"max_output_tokens":7}}',
  );
  expect(maxOutputTokens(GEMINI, members)).toBe(7);
});

it('is not known where a member that may name it is too long to be read', () => {
  const long = JSON.stringify({ maxOutputTokens: 60_000, stopSequences: ['x'.repeat(17_000)] });
  const members = read(`{"generation_config":{"maxOutputTokens":1},"generationConfig":${long}}`);
  expect(members.problem).toBeNull();
  expect(maxOutputTokens(GEMINI, members)).toBeNull();
  // It may ask for as many as there can be.
  expect(choices(GEMINI, members)).toBe(8);
});

it('counts each prompt of a list, however long the list is', () => {
  const members = read(JSON.stringify({ model: 'm', n: 2, prompt: Array(9_000).fill('text') }));
  expect(choices('/v1/completions', members)).toBe(18_000);
  expect(choices('/v1/chat/completions', members)).toBe(2);
});

it('is not known beside a limit that is none to some servers', () => {
  const members = read('{"max_tokens":5,"max_completion_tokens":-1}');
  expect(maxOutputTokens('/v1/chat/completions', members)).toBeNull();
});
