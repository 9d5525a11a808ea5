import fc from 'fast-check';
import { addDecimals, exactDecimal } from '../../../src/bodies/usage/reported-cost.js';
import { check } from '../../support/property.js';

describe('a number as an exact decimal', () => {
  it.each<[string, number, string | null]>([
    ['0', 0, '0'],
    ['0.000', 0, '0'],
    ['0.00014', 0, '0.00014'],
    ['1.4100E-05', 0, '0.0000141'],
    ['1.5e3', 0, '1500'],
    ['12.5e1', 0, '125'],
    ['37756000', 10, '0.0037756'],
    ['10000000000', 10, '1'],
    ['123456789012345678901234567890.123456789', 0, '123456789012345678901234567890.123456789'],
    ['-0.1', 0, null],
    ['1e999', 0, null],
    ['1e', 0, null],
    ['"1"', 0, null],
    ['1.', 0, null],
    ['0x1', 0, null],
    ['1'.repeat(41), 0, null],
  ])('%s, moved by %i, is %s', (number, places, expected) => {
    expect(exactDecimal(number, places)).toBe(expected);
  });

  it('has the value of the number', () => {
    check(
      fc.property(fc.double({ min: 0, max: 1e6, noNaN: true }), (value) => {
        const decimal = exactDecimal(JSON.stringify(value));
        // Below 1e-99 no amount is meant.
        if (decimal !== null) expect(Number(decimal)).toBe(value);
        else expect(value).toBeLessThan(1e-99);
      }),
    );
  });

  it.each([
    ['0.95', '19', '19.95'],
    ['0', '0', '0'],
    ['0.1', '0.2', '0.3'],
    ['0.0000001', '99.9999999', '100'],
  ])('%s and %s add up to %s', (a, b, sum) => {
    expect(addDecimals(a, b)).toBe(sum);
    expect(addDecimals(b, a)).toBe(sum);
  });
});
