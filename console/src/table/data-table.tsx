import { Button, Center, Table, Text, UnstyledButton } from '@mantine/core';
import {
  columnVisibilityFeature,
  createColumnHelper,
  createSortedRowModel,
  rowSortingFeature,
  tableFeatures,
  useTable,
} from '@tanstack/react-table';
import { type KeyboardEvent, type MouseEvent, type ReactNode, useMemo, useRef } from 'react';
import { ErrorAlert } from '../display/error-alert';
import { LoadingRows } from '../display/loading';
import classes from './data-table.module.css';
import { useCards } from './use-cards';

export interface Column<Row> {
  id: string;
  header: string;
  cell: (row: Row) => ReactNode;
  align?: 'left' | 'right';
  /** The gateway sorts the rows by the column, see `sort` of the table. */
  sorts?: boolean;
  /** The column can be sorted by this on the page. Only for tables that are loaded whole. */
  sortBy?: (row: Row) => string | number | bigint | null;
  /** Never breaks into lines; longer text ends in an ellipsis. */
  oneLine?: boolean;
  /** Has a line of its own in the card on a narrow screen, as bars need. */
  wholeLine?: boolean;
  /** Hidden until it is chosen. */
  optional?: boolean;
  /** Buttons, which need no heading in a card. */
  actions?: boolean;
  /** A shorter heading is not enough on narrow screens: leave the column out of the cards there. */
  wideOnly?: boolean;
}

/** A column by its ID. */
export interface Sort {
  id: string;
  desc: boolean;
}

interface Props<Row> {
  /** Names the table for screen readers. */
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[] | undefined;
  rowId: (row: Row) => string;
  error?: unknown;
  retry?: () => void;
  /** Shown instead of the table when there are no rows. */
  empty: ReactNode;
  onOpen?: (row: Row) => void;
  /** The row that is open in a drawer. */
  openId?: string;
  /** Keyset pages: there are more rows. */
  hasMore?: boolean;
  loadMore?: () => void;
  loadingMore?: boolean;
  /** IDs of the columns to show, or undefined for the default ones. */
  shown?: readonly string[];
  /** Older rows are shown while new ones are loaded. */
  stale?: boolean;
  /** Many columns: with less space between them. */
  dense?: boolean;
  /** The column by which the rows are sorted, and what changes it. Without `onSort` only the first order. */
  sort?: Sort;
  onSort?: (sort: Sort | undefined) => void;
  /** A row of sums below the others: cells by column ID. */
  totals?: Readonly<Record<string, ReactNode>>;
}

type SortChange = Sort[] | ((sorting: Sort[]) => Sort[]);

/** Tables with so few columns stay tables in narrower places. */
const FEW = 5;
/** In rem: narrower ones are cards, even if the table would fit. */
const NARROW = { few: 25, many: 40 };

const features = tableFeatures({
  columnVisibilityFeature,
  rowSortingFeature,
  sortedRowModel: createSortedRowModel(),
});

/**
 * A table where it fits; elsewhere every row is a card that begins with its first cell, so that nothing is cut or scrolls
 * sideways. Keyboard: rows that open can be focused and opened with Enter.
 */
export function DataTable<Row extends object>(props: Props<Row>) {
  const { rows, error, retry, empty } = props;
  if (rows === undefined) return error ? <ErrorAlert error={error} retry={retry} /> : <LoadingRows />;
  return (
    <>
      {error !== null && error !== undefined && <ErrorAlert error={error} retry={retry} />}
      {rows.length === 0 ? empty : <Rows {...props} rows={rows} />}
    </>
  );
}

function Rows<Row extends object>(props: Props<Row> & { rows: readonly Row[] }) {
  const { columns, rows, rowId, onOpen, openId, shown, totals } = props;
  const definitions = useMemo(() => {
    const helper = createColumnHelper<typeof features, Row>();
    return columns.map((column) =>
      helper.accessor((row): unknown => column.sortBy?.(row) ?? null, {
        id: column.id,
        header: column.header,
        enableSorting: column.sortBy !== undefined || column.sorts === true,
        sortDescFirst: column.align === 'right',
      }),
    );
  }, [columns]);
  // Rows keep the values that they were sorted by: other columns need other rows.
  const data = useMemo(() => [...rows], [rows, columns]);
  const byId = useMemo(() => new Map(columns.map((column) => [column.id, column])), [columns]);
  const columnVisibility = useMemo(
    () =>
      Object.fromEntries(
        columns.map(({ id, optional }) => [id, shown === undefined ? optional !== true : shown.includes(id)]),
      ),
    [columns, shown],
  );
  const sorting = props.sort === undefined ? [] : [props.sort];
  const table = useTable({
    features,
    columns: definitions,
    data,
    getRowId: rowId,
    ...(props.onSort === undefined
      ? { state: { columnVisibility }, initialState: { sorting } }
      : {
          state: { columnVisibility, sorting },
          manualSorting: columns.some(({ sorts }) => sorts),
          onSortingChange: (change: SortChange) =>
            props.onSort?.((typeof change === 'function' ? change(sorting) : change)[0]),
        }),
  });
  const frame = useRef<HTMLDivElement>(null);
  useCards(frame, columns.length <= FEW ? NARROW.few : NARROW.many, [data, columnVisibility, totals]);
  return (
    <>
      <div ref={frame} className={classes.frame}>
        <div className={classes.scroll}>
          <Table
            className={classes.table}
            horizontalSpacing={props.dense === true ? 6 : undefined}
            aria-label={props.label}
            role="table"
            highlightOnHover={onOpen !== undefined}
            data-stale={props.stale || undefined}
          >
            <Table.Thead className={classes.head} role="rowgroup">
              {table.getHeaderGroups().map((group) => (
                <Table.Tr key={group.id} role="row">
                  {group.headers.map((header) => {
                    const column = byId.get(header.column.id);
                    const sorted = header.column.getIsSorted();
                    return (
                      <Table.Th
                        key={header.id}
                        role="columnheader"
                        ta={column?.align}
                        aria-sort={
                          sorted === false ? undefined : sorted === 'asc' ? 'ascending' : 'descending'
                        }
                      >
                        {header.column.getCanSort() ? (
                          <UnstyledButton
                            className={classes.sort}
                            data-align={column?.align}
                            onClick={header.column.getToggleSortingHandler()}
                          >
                            {column?.header}
                            <span aria-hidden="true" data-sorted={sorted !== false || undefined}>
                              {sorted === 'asc' ? '↑' : sorted === 'desc' ? '↓' : '↕'}
                            </span>
                          </UnstyledButton>
                        ) : (
                          column?.header
                        )}
                      </Table.Th>
                    );
                  })}
                </Table.Tr>
              ))}
            </Table.Thead>
            <Table.Tbody role="rowgroup">
              {table.getRowModel().rows.map((row) => (
                <Table.Tr
                  key={row.id}
                  role="row"
                  data-open={row.id === openId || undefined}
                  className={onOpen === undefined ? classes.row : `${classes.row} ${classes.opens}`}
                  {...(onOpen !== undefined && opens(() => onOpen(row.original)))}
                >
                  {row.getVisibleCells().map((cell) => {
                    const column = byId.get(cell.column.id);
                    if (column === undefined) return null;
                    return (
                      <Table.Td
                        key={cell.id}
                        data-one-line={column.oneLine || column.align === 'right' || undefined}
                        role="cell"
                        ta={column.align}
                        data-label={column.header}
                        data-actions={column.actions}
                        data-wide-only={column.wideOnly}
                        data-whole-line={column.wholeLine}
                      >
                        <span className={classes.value}>{column.cell(row.original)}</span>
                      </Table.Td>
                    );
                  })}
                </Table.Tr>
              ))}
            </Table.Tbody>
            {totals !== undefined && (
              <Table.Tfoot role="rowgroup">
                <Table.Tr role="row" className={`${classes.row} ${classes.totals}`}>
                  {table.getVisibleLeafColumns().map(({ id }) => (
                    <Table.Td key={id} role="cell" ta={byId.get(id)?.align} data-label={byId.get(id)?.header}>
                      <span className={classes.value}>{totals[id]}</span>
                    </Table.Td>
                  ))}
                </Table.Tr>
              </Table.Tfoot>
            )}
          </Table>
        </div>
      </div>
      {props.hasMore === true && (
        <Center mt="md">
          <Button variant="default" onClick={props.loadMore} loading={props.loadingMore}>
            Load more
          </Button>
        </Center>
      )}
      {props.hasMore === false && rows.length > 25 && (
        <Text c="dimmed" size="sm" ta="center" mt="md">
          End of the list
        </Text>
      )}
    </>
  );
}

/** The row opens on a click and on Enter, but not when something inside it was meant. */
function opens(open: () => void) {
  return {
    tabIndex: 0,
    onClick: (event: MouseEvent<HTMLElement>) => {
      const inner = (event.target as HTMLElement).closest('a, button, input, label');
      if (inner === null && window.getSelection()?.toString() === '') open();
    },
    onKeyDown: (event: KeyboardEvent<HTMLElement>) => {
      if (event.key === 'Enter' && event.target === event.currentTarget) open();
    },
  };
}
