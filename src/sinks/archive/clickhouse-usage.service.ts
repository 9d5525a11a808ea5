import { Injectable } from '@nestjs/common';
import { ServiceError } from '../../errors/service-error.js';
import { GROUPED_ANNOTATIONS } from '../../keys/key-annotations.js';
import { KeyNames } from '../../keys/key-names.service.js';
import { MEASURES } from '../../usage/measures.js';
import { type ArchivedUsage, UsageArchive, type UsageArchiveReader } from '../../usage/usage-archive.js';
import type { UsageGroup } from '../../usage/usage-groups.js';
import { memberOf, type UsageRequest } from '../../usage/usage-query.js';
import { NO_USAGE, type UsageSums } from '../../usage/usage.schema.js';
import { ClickHouseReader } from './clickhouse-reader.service.js';
import { groupName, type KeyAnnotations, sumName, totalName, usageQuery } from './usage-query.js';

type Row = Record<string, string | number | number[] | null>;

const SUMS = Object.keys(NO_USAGE).filter((name) => name in MEASURES);

/** Adds up the rows of the archive. */
@Injectable()
export class ClickHouseUsage implements UsageArchiveReader {
  constructor(
    private readonly clickhouse: ClickHouseReader,
    private readonly names: KeyNames,
    archive: UsageArchive,
  ) {
    if (clickhouse.isNamed) archive.reader = this;
  }

  async list(groups: readonly UsageGroup[], request: UsageRequest, zone: string): Promise<ArchivedUsage> {
    if (request.sort === 'p95')
      throw ServiceError.of(
        'invalid',
        'sort',
        'cannot be p95 for days that only the archive has; choose another, or a later from',
      );
    const annotations: KeyAnnotations = {};
    for (const name of GROUPED_ANNOTATIONS)
      if (groups.includes(name)) annotations[name] = await this.names.annotations(name);
    const teamGroups = groups.includes('group') ? await this.names.groups() : undefined;
    const { data, sink } = await this.clickhouse.read<Row>((table) =>
      usageQuery(table, groups, request, zone, annotations, teamGroups),
    );
    const [first] = data;
    return {
      rows: data.map((row) => ({
        ...Object.fromEntries(groups.map((group, i) => [memberOf(group), row[groupName(i)] ?? null])),
        ...sumsOf(row, sumName),
        latency: row[sumName('latency')] as number[],
      })),
      totals:
        request.cursor === undefined ? (first === undefined ? NO_USAGE : sumsOf(first, totalName)) : null,
      until: sink.recordedUntil,
    };
  }
}

/** @param nameOf where the row has the sum of this name */
function sumsOf(row: Row, nameOf: (name: string) => string): UsageSums {
  const sums = Object.fromEntries(SUMS.map((name) => [name, row[nameOf(name)] ?? null])) as UsageSums;
  return { ...sums, total_tokens: sums.prompt_tokens + sums.completion_tokens };
}
