// What torch/extension.h becomes: torch.h, and the binding of functions where there is one.
#pragma once

#include <kopt_light/torch.h>
#if KOPT_BIND
#include <kopt_light/bind.h>
#endif
