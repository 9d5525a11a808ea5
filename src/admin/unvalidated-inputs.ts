import type { Type } from '@nestjs/common';
import { MetadataScanner } from '@nestjs/core';
import { AdminValidationPipe } from './validation.pipe.js';

/** What Nest keeps of the parameters of a handler, by `<kind>:<index>`. */
const PARAMETERS = '__routeArguments__';
const PIPES = '__pipes__';
const DECORATORS: Readonly<Record<string, string>> = { 3: '@Body', 4: '@Query', 5: '@Param' };
/** What TypeScript says of a parameter whose type is no class. */
const PLAIN = new Set<unknown>([undefined, Object, String, Number, Boolean, Array]);

interface Parameter {
  readonly index: number;
  /** The name of one field; undefined for all of them. */
  readonly data?: string;
  readonly schema?: object;
  readonly pipes: readonly unknown[];
}

/** Controllers of the admin API have its pipe. */
export function isAdminController(controller: Type): boolean {
  return pipesOf(controller).includes(AdminValidationPipe);
}

/**
 * What an admin controller would take as anybody sends it: bodies, queries, and classes, without a schema and without
 * another pipe than AdminValidationPipe, which validates schemas only.
 *
 * @returns for each, what its handler declares
 */
export function unvalidatedInputs(controller: Type): string[] {
  if (pipesOf(controller).some((pipe) => pipe !== AdminValidationPipe)) return [];
  const prototype = controller.prototype as Record<string, object>;
  return new MetadataScanner().getAllMethodNames(prototype).flatMap((method) => {
    if (pipesOf(prototype[method]!).length > 0) return [];
    const types = (Reflect.getMetadata('design:paramtypes', prototype, method) ?? []) as Type[];
    const parameters = (Reflect.getMetadata(PARAMETERS, controller, method) ?? {}) as Record<
      string,
      Parameter
    >;
    return Object.entries(parameters).flatMap(([key, { index, data, schema, pipes }]) => {
      const decorator = DECORATORS[key.split(':')[0]!];
      if (decorator === undefined || schema !== undefined || pipes.length > 0) return [];
      const type = types[index];
      const isOneValue = decorator !== '@Body' && data !== undefined;
      if (isOneValue && PLAIN.has(type)) return [];
      const field = data === undefined ? '' : `'${data}'`;
      return [
        `${decorator}(${field}) ${PLAIN.has(type) ? '' : `of the class ${type!.name} `}in ${controller.name}.${method}()`,
      ];
    });
  });
}

function pipesOf(target: object): readonly unknown[] {
  return (Reflect.getMetadata(PIPES, target) ?? []) as unknown[];
}
