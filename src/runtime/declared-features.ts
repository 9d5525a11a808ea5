import { checkedFeatures, DeclaredFeature, type Feature } from '../config/features.js';
import { type ImportedModule, modulesBelow, valuesOf } from './module-tree.js';

/** The features that the modules below a root declare, before Nest makes any of them. @throws Error if two have one name */
export async function featuresBelow(root: ImportedModule): Promise<Feature[]> {
  return checkedFeatures(valuesOf(await modulesBelow(root), DeclaredFeature));
}
