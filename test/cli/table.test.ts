import stringWidth from 'string-width';
import { type Column, table } from '../../src/cli/table.js';

interface Row {
  name: string;
  calls: number;
}
const NAME: Column<Row> = { head: 'NAME', cell: ({ name }) => name, min: 8 };
const CALLS: Column<Row> = { head: 'CALLS', cell: ({ calls }) => calls, align: 'right' };
const ID: Column<Row> = { head: 'ID', cell: () => '01890a5d-ac96-774b-bcce-b302099a8057', drop: 1 };
const KIND: Column<Row> = { head: 'KIND', cell: () => 'inference', drop: 2 };
const row = (name: string, calls = 1) => ({ name, calls });
const lines = (columns: Column<Row>[], rows: Row[], width: number, total?: (string | number)[]) =>
  table(columns, rows, { width, colour: false, total }).text.split('\n');

it('aligns numbers to the right, with separators', () => {
  expect(
    lines([NAME, CALLS], [row('search', 54_779_164), row('ads', 7)], Infinity, ['TOTAL', 54_779_171]),
  ).toEqual(['NAME         CALLS', 'search  54,779,164', 'ads              7', 'TOTAL   54,779,171']);
});

it('counts wide and combining characters as a terminal does', () => {
  const [head, ...rows] = lines(
    [NAME, CALLS],
    [row('検索チーム'), row('Ünïcode'), row('👩‍👩‍👧 x'), row('plain')],
    Infinity,
  );
  for (const line of rows) expect(stringWidth(line)).toBe(stringWidth(head!));
});

it('leaves out the columns that matter least, then cuts names, and fits any terminal', () => {
  const rows = [row('a-very-long-name-of-a-team', 12)];
  const columns = [NAME, CALLS, KIND, ID];
  const at = (width: number) => table(columns, rows, { width, colour: false });
  expect(at(120).hidden).toEqual([]);
  expect(at(60).hidden).toEqual(['ID']);
  expect(at(24).hidden).toEqual(['KIND', 'ID']);
  for (const width of [120, 80, 60, 40, 24, 16]) {
    const { text } = at(width);
    expect(Math.max(...text.split('\n').map((line) => stringWidth(line)))).toBeLessThanOrEqual(width);
    expect(text).toContain('12');
  }
  expect(at(20).text).toContain('a-very-long-…');
});

it('cuts between characters, never inside one', () => {
  const { text } = table([NAME], [row('検索検索検索検索')], { width: 10, colour: false });
  expect(text.split('\n')[1]).toBe('検索検索…');
});

it('prints colours only when it may, and they take no width', () => {
  const styled: Column<Row> = { ...NAME, style: () => 'red' };
  const plain = table([styled, CALLS], [row('x')], { width: 80, colour: false }).text;
  const coloured = table([styled, CALLS], [row('x')], { width: 80, colour: true }).text;
  expect(coloured).toContain('\u001b[31mx\u001b[39m');

  expect(coloured.replace(/\u001b\[\d+m/g, '')).toBe(plain);
});
