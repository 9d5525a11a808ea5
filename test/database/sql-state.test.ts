import { QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError } from 'typeorm';
import { isDatabaseUnavailable, isUniqueViolation } from '../../src/database/sql-state.js';

const withCode = (code: string) => Object.assign(new Error('x'), { code });

describe('an error of the database', () => {
  it.each([
    '08006',
    '40001',
    '40P01',
    '53300',
    '53100',
    '57P01',
    '57P03',
    '57014',
    '25006',
    'ECONNREFUSED',
    'ENOTFOUND',
    'EPIPE',
  ])('with code %s passes by itself', (code) => expect(isDatabaseUnavailable(withCode(code))).toBe(true));

  it.each([
    'Connection terminated unexpectedly',
    'Connection terminated due to connection timeout',
    'timeout exceeded when trying to connect',
    // While a pool connects that has a longer time for waiting.
    'timeout expired',
    'Query read timeout',
    'Driver not Connected',
  ])('that says %j passes by itself', (message) =>
    expect(isDatabaseUnavailable(new Error(message))).toBe(true),
  );

  it.each([new QueryRunnerAlreadyReleasedError(), new QueryRunnerProviderAlreadyReleasedError()])(
    'that broke a transaction off between two statements passes by itself: %p',
    (error) => expect(isDatabaseUnavailable(error)).toBe(true),
  );

  it('passes by itself when every address of a host refused', () => {
    expect(
      isDatabaseUnavailable(new AggregateError([withCode('ECONNREFUSED'), withCode('ECONNREFUSED')])),
    ).toBe(true);
  });

  it.each([
    withCode('42P01'),
    withCode('23505'),
    withCode('22021'),
    new TypeError('x'),
    new AggregateError([]),
    null,
    'x',
  ])('is not what %p is', (error) => expect(isDatabaseUnavailable(error)).toBe(false));

  it('is a unique violation of one constraint only', () => {
    const error = Object.assign(withCode('23505'), { constraint: 'team_name_key' });
    expect(isUniqueViolation(error, 'team_name_key')).toBe(true);
    expect(isUniqueViolation(error, 'team_pkey')).toBe(false);
    expect(isUniqueViolation(undefined, 'team_pkey')).toBe(false);
  });
});
