#include "data/source.hpp"
