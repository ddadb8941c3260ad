from metalloid.compat.Metal import *
device = MTLCreateSystemDefaultDevice();
defaultLibrary = device.newDefaultLibrary();
addFunction = defaultLibrary.newFunctionWithName_("add_arrays")
_mAddFunctionPSO = device.newComputePipelineStateWithFunction_error_(addFunction, None);
